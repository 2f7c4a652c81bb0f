"""What can be seen of a tool's schema without an engine: whether it is a JSON Schema at all.

Only the shape of its keywords is looked at (JSON Schema 2020-12, core and validation, and what of
the older drafts is still written). What a schema means, and whether an answer can be held to it, is
for the engine that compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

_Place = tuple[str, Any]
_SCHEMA: Final = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_SCHEMAS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_BY_NAME: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


_RIGHT: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, f"one or more of {', '.join(sorted(TYPES))}"),
    "required": (_is_names, "a list of names"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
         "minContains", "maxContains"), (_is_count, "a count")
    ),
    **dict.fromkeys(("minimum", "maximum"), (_is_number, "a number")),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(
        ("pattern", "format", "$ref", "$id", "$anchor"),
        (lambda value: isinstance(value, str), "a string"),
    ),
}  # fmt: skip
"""Keyword to what its value must be, and the same in words."""


def fault_in(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with the schema of a tool's arguments, with its place; None if nothing is.

    Arguments are an object, so its outermost type, if it has one, allows objects.
    """
    waiting: list[_Place] = [("", schema)]
    while waiting:
        place, inner = waiting.pop()
        if isinstance(inner, bool):
            continue
        if not isinstance(inner, dict):
            return f"{place}: a schema is an object or a boolean"
        for keyword, (right, words) in _RIGHT.items():
            if keyword in inner and not right(inner[keyword]):
                return f"{place}/{keyword}: it must be {words}"
        for keyword in (*_SCHEMAS, *_BY_NAME):
            kind = list if keyword in _SCHEMAS else dict
            if keyword in inner and not isinstance(inner[keyword], kind):
                words = "a list of schemas" if kind is list else "an object of schemas"
                return f"{place}/{keyword}: it must be {words}"
        waiting += _inside(inner, place)
    kinds = schema.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return "/type: arguments are an object"
    return None


def _inside(schema: Mapping[str, Any], place: str) -> Iterator[_Place]:
    """The schemas in a schema."""
    for keyword in _SCHEMA:
        if keyword in schema:
            yield f"{place}/{keyword}", schema[keyword]
    for keyword in _SCHEMAS:
        for index, inner in enumerate(schema.get(keyword, ())):
            yield f"{place}/{keyword}/{index}", inner
    for keyword in _BY_NAME:
        for name, inner in schema.get(keyword, {}).items():
            yield f"{place}/{keyword}/{name}", inner
    items = schema.get("items", True)
    for index, inner in enumerate(items if isinstance(items, list) else [items]):
        yield f"{place}/items" + (f"/{index}" if isinstance(items, list) else ""), inner
