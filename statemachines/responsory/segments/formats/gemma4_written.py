"""An object as Gemma writes it, as a grammar made of the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.segments.written import (
    Exactly,
    InOrder,
    Matching,
    OneOf,
    Rule,
    Rules,
    TextWithout,
    Times,
)

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

QUOTE = Exactly('<|"|>')
STRING = InOrder((QUOTE, TextWithout(('<|"|>',)), QUOTE))
SCALARS: dict[str, Written] = {
    "string": STRING,
    "integer": Matching(r"-?(0|[1-9][0-9]{0,17})"),
    "number": Matching(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"),
    "boolean": OneOf((Exactly("true"), Exactly("false"))),
    "null": Exactly("null"),
}
ANY = "any_value"
COMMA = Exactly(",")
KEY = Matching(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
DEEPEST = 12
"""Levels of a schema that are followed; below that any value may stand."""


def gemma_object(tool: Tool) -> Written:
    """The object of a call's arguments, brackets included."""
    if tool.kind == "custom":
        text = STRING if tool.grammar is None else InOrder((QUOTE, tool.grammar, QUOTE))
        return InOrder((Exactly("{input:"), text, Exactly("}")))
    return Rules(_object(tool.parameters or {}, 0), {ANY: _any_value()})


def _any_value() -> Written:
    pair = InOrder((KEY, Exactly(":"), Rule(ANY)))
    listed = InOrder((Exactly("["), _some(Rule(ANY)), Exactly("]")))
    mapped = InOrder((Exactly("{"), _some(pair), Exactly("}")))
    return OneOf((*SCALARS.values(), listed, mapped))


def _some(part: Written) -> Written:
    """None, or some with commas between them."""
    return Times(InOrder((part, Times(InOrder((COMMA, part))))), 0, 1)


def _object(schema: Mapping[str, JSON], depth: int) -> Written:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return Exactly("{}")
    needed = [name for name in properties if isinstance(required, list) and name in required]
    free = [name for name in properties if name not in needed]
    fields = {
        name: InOrder((Exactly(f"{name}:"), _value(properties[name], depth + 1)))
        for name in properties
    }
    if needed:
        first = [fields[needed[0]], *(InOrder((COMMA, fields[name])) for name in needed[1:])]
        inside: Written = InOrder((*first, *(_after(fields[name]) for name in free)))
    else:
        ways: list[Written] = [Exactly("")]
        for index, name in enumerate(free):
            ways.append(InOrder((fields[name], *(_after(fields[n]) for n in free[index + 1 :]))))
        inside = OneOf(tuple(ways))
    return InOrder((Exactly("{"), inside, Exactly("}")))


def _after(field: Written) -> Written:
    return Times(InOrder((COMMA, field)), 0, 1)


def _value(schema: JSON, depth: int) -> Written:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return Rule(ANY)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list) and listed:
        return OneOf(tuple([_listed(value) for value in listed]))
    for key in ("anyOf", "oneOf"):
        parts = schema.get(key)
        if isinstance(parts, list) and parts:
            return OneOf(tuple([_value(part, depth + 1) for part in parts]))
    types = schema.get("type")
    if isinstance(types, list):
        return OneOf(tuple([_value({**schema, "type": one}, depth + 1) for one in types]))
    if isinstance(types, str) and types in SCALARS:
        return SCALARS[types]
    if types == "array":
        item = _value(schema.get("items", True), depth + 1)
        return InOrder((Exactly("["), _some(item), Exactly("]")))
    if types == "object" and isinstance(schema.get("properties"), Mapping):
        return _object(schema, depth)
    return Rule(ANY)


def _listed(value: JSON) -> Written:
    if isinstance(value, str):
        return InOrder((QUOTE, Exactly(value), QUOTE))
    if isinstance(value, list):
        return InOrder((Exactly("["), *_joined([_listed(item) for item in value]), Exactly("]")))
    if isinstance(value, Mapping):
        pairs = [InOrder((Exactly(f"{key}:"), _listed(item))) for key, item in value.items()]
        return InOrder((Exactly("{"), *_joined(pairs), Exactly("}")))
    return Exactly(json.dumps(value))


def _joined(parts: Sequence[Written]) -> list[Written]:
    """The parts with commas between them."""
    return [one for part in parts for one in (COMMA, part)][1:]
