"""A schema of which only what it names is written.

JSON Schema lets an object have any other property beside those it names, unless it says otherwise.
A model that is held to such a schema would be free to write them without end. What it writes
instead, the named ones alone, is valid all the same.
"""

from __future__ import annotations

from typing import Any

_PARTS = ("items", "additionalProperties", "contains", "else", "if", "not", "then")
_LISTS = ("anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_OPEN = {"additionalProperties", "patternProperties", "unevaluatedProperties", "minProperties"}
_TOGETHER = {"allOf", "not", "if", "dependentSchemas"}
_BESIDE = {"anyOf", "oneOf", "$ref"}


def closed(schema: Any) -> Any:
    """The schema, with objects that name their properties closed to others.

    As it is where parts are put together, as by ``allOf``: each must leave room for the others.
    """
    return schema if _puts_together(schema) else _closed(schema)


def _puts_together(part: Any) -> bool:
    waiting = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if one.keys() & _TOGETHER or ("properties" in one and one.keys() & _BESIDE):
                return True
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


def _closed(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    made = dict(part)
    for key in _PARTS:
        if key in made:
            made[key] = _closed(made[key])
    for key in _LISTS:
        if isinstance(made.get(key), list):
            made[key] = [_closed(one) for one in made[key]]
    for key in _NAMED:
        if isinstance(made.get(key), dict):
            made[key] = {name: _closed(one) for name, one in made[key].items()}
    properties = made.get("properties")
    names = properties.keys() if isinstance(properties, dict) else ()
    required = made.get("required", [])
    known = isinstance(required, list) and all(name in names for name in required)
    if names and known and not made.keys() & _OPEN:
        made["additionalProperties"] = False
    return made
