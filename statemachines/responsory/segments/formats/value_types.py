"""Which JSON types a JSON Schema allows, as far as that can be told from its outside.

A family that writes values without their types needs to know: ``3`` is a number or a string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from responsory.segments.formats.references import referred

if TYPE_CHECKING:
    from responsory.values import JSON

ALL = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
MOST_STEPS = 64
"""Parts of a schema that are looked at for one value."""

KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
SIGNS = {
    "properties": "object",
    "additionalProperties": "object",
    "required": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "format": "string",
    "minimum": "number",
    "maximum": "number",
    "multipleOf": "number",
}
"""Keywords that say something of one type alone, and which."""


def property_types(schema: Mapping[str, JSON] | None, name: str) -> frozenset[str]:
    """The types that a property may have; all, where nothing is said of it."""
    if schema is None:
        return ALL
    types = _Types(schema)
    parts = [each[name] for each in _properties(schema, schema, [MOST_STEPS]) if name in each]
    return frozenset().union(*map(types.of, parts)) or ALL


def schema_types(root: Mapping[str, JSON], schema: JSON) -> frozenset[str]:
    """The types that a schema inside of ``root`` allows."""
    return _Types(root).of(schema)


def _properties(
    root: Mapping[str, JSON], schema: JSON, left: list[int]
) -> Iterator[Mapping[str, JSON]]:
    """What the schema says of properties by their names, in it and in each of its alternatives."""
    left[0] -= 1
    if left[0] < 0 or not isinstance(schema, Mapping):
        return
    schema = _followed(root, schema)
    if isinstance(properties := schema.get("properties"), Mapping):
        yield properties
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            yield from _properties(root, part, left)


class _Types:
    def __init__(self, root: Mapping[str, JSON]) -> None:
        self._root = root
        self._left = MOST_STEPS

    def of(self, schema: JSON) -> frozenset[str]:
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            return ALL
        schema = _followed(self._root, schema)
        found = _named(schema.get("type"))
        for key in ("enum", "const"):
            if key in schema:
                values = schema[key]
                listed = values if key == "enum" and isinstance(values, list) else [values]
                found &= frozenset(KINDS.get(type(value), "string") for value in listed)
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            if isinstance(parts, list) and parts:
                found &= frozenset().union(*map(self.of, parts))
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            found &= self.of(part)
        if found == ALL and (signs := {SIGNS[key] for key in schema if key in SIGNS}):
            return frozenset(signs)
        return found or ALL


def _named(types: JSON) -> frozenset[str]:
    names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    found = frozenset(name for name in names if isinstance(name, str)) & ALL
    if "number" in found:
        found |= {"integer"}
    return found or ALL


def _followed(root: Mapping[str, JSON], schema: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The schema, or the one that it refers to inside ``root``."""
    for _ in range(MOST_STEPS):
        place = schema.get("$ref")
        if not isinstance(place, str) or not place.startswith("#"):
            return schema
        part = referred(root, place)
        if not isinstance(part, Mapping):
            return {}
        schema = part
    return {}
