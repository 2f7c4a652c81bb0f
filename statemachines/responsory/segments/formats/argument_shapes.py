"""What the top of a tool's schema says: the objects that its arguments may be.

Notations other than JSON's write the arguments property by property, so the top has to be read here
and cannot be left to a compiler of JSON schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from responsory.immutable import immutable
from responsory.segments.formats.references import referred
from responsory.segments.formats.value_types import KINDS
from responsory.segments.written import Unwritable

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.values import JSON

NOTES = frozenset({
    "title", "description", "default", "examples", "$schema", "$defs", "definitions", "$id",
    "deprecated", "readOnly", "writeOnly", "$comment",
})  # fmt: skip
"""Keywords that hold a value to nothing."""
OBJECT = frozenset({"properties", "required", "additionalProperties"})
MOST_SHAPES = 64
"""Alternatives at the top of a schema, and references followed there."""


@immutable
class Shape:
    """An object with these properties, some of which are required. ``other``: the schema of any
    more, by whatever name, in the place of them; None if none may come."""

    properties: Mapping[str, JSON]
    required: frozenset[str]
    other: JSON


def shapes(tool: Tool) -> list[Shape]:
    """The objects of which the arguments are one. Raises ``Unwritable`` where a strict tool's
    schema says more than that."""
    root = tool.parameters or {}
    return list(_shapes(root, root, tool, [MOST_SHAPES]))


def _shapes(root: Mapping[str, JSON], schema: JSON, tool: Tool, left: list[int]) -> Iterator[Shape]:
    left[0] -= 1
    if left[0] < 0:
        _refuse(tool, "it has too many alternatives")
        return
    if not isinstance(schema, Mapping):
        schema = {} if schema is not False else {"not": {}}
    said = schema.keys() - NOTES - {"type"}
    if said == {"$ref"}:
        yield from _shapes(root, referred(root, schema["$ref"]), tool, left)
        return
    if said == {"anyOf"} or (said == {"oneOf"} and not tool.strict):
        (key,) = said
        parts = schema[key]
        if isinstance(parts, list) and parts:
            for part in parts:
                yield from _shapes(root, part, tool, left)
            return
    if beyond := said - OBJECT:
        _refuse(tool, f"this model's form cannot be held to {', '.join(sorted(beyond))}")
    if schema.get("type", "object") != "object":
        _refuse(tool, "arguments are an object")
    yield shape_of(schema, tool)


def shape_of(schema: Mapping[str, JSON], tool: Tool, place: str = "") -> Shape:
    """The object of a schema, with a property for each name that it requires. Raises ``Unwritable``
    for a strict tool where such a one is excluded."""
    properties, required = schema.get("properties"), schema.get("required")
    named = dict(properties) if isinstance(properties, Mapping) else {}
    needed = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
    other = schema.get("additionalProperties", True)
    for name in needed:
        if name not in named and other is not False:
            named[name] = other
        elif name not in named:
            _refuse(tool, "a property is required that is no property", place)
    said = schema.keys() - NOTES - {"type", "properties", "required"}
    # What names anything is held to that, and so are arguments of a strict tool.
    loose = not tool.strict and (bool(said) or tool.parameters is None)
    free = other is not False and not named and (loose or place != "")
    return Shape(named, frozenset(needed) & named.keys(), other if free else None)


def listed_values(schema: Mapping[str, JSON]) -> list[JSON] | None:
    """What a schema lists with ``enum`` or ``const``, as far as its types allow; None if it says
    anything else, or lists nothing."""
    said = schema.keys() - NOTES
    if not said & {"enum", "const"} or not said <= {"enum", "const", "type"}:
        return None
    values = schema.get("enum", [schema.get("const")])
    if not isinstance(values, list):
        return None
    if "const" in schema:
        values = [one for one in values if _same(one, schema["const"])]
    named = schema.get("type")
    types = [named] if isinstance(named, str) else named
    if not isinstance(types, list):
        return values
    return [one for one in values if any(_is_a(one, kind) for kind in types)]


def _same(one: JSON, other: JSON) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_a(value: JSON, kind: JSON) -> bool:
    found = KINDS.get(type(value), "object")
    whole = found == "integer" or (isinstance(value, float) and value.is_integer())
    return found == kind or (whole and kind in ("integer", "number"))


def _refuse(tool: Tool, reason: str, place: str = "") -> None:
    if tool.strict:
        raise Unwritable(tool.place, f"{place or 'at the top'}: {reason}")
