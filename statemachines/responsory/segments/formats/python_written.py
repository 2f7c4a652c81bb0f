"""A call as Python writes it, as a grammar made of the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from responsory.segments.written import Exactly, InOrder, Matching, OneOf, Rule, Rules, Times

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

STRING = Matching(r"'([^'\\\x00-\x1f]|\\[nt'\\])*'")
SCALARS: dict[str, Written] = {
    "string": STRING,
    "integer": Matching(r"-?(0|[1-9][0-9]{0,17})"),
    "number": Matching(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"),
    "boolean": OneOf((Exactly("True"), Exactly("False"))),
    "null": Exactly("None"),
}
ANY = "any_literal"
COMMA = Exactly(", ")
DEEPEST = 12
"""Levels of a schema that are followed; below that any literal may stand."""


def python_call(tool: Tool) -> Written:
    """``name(key=value, …)``."""
    if tool.kind == "custom":
        inside: Written = InOrder((Exactly("input="), STRING))
    else:
        inside = _fields(tool.parameters or {}, "{}=", 0)
    call = InOrder((Exactly(f"{tool.name}("), inside, Exactly(")")))
    return Rules(call, {ANY: _any_literal()})


def _any_literal() -> Written:
    pair = InOrder((STRING, Exactly(": "), Rule(ANY)))
    listed = InOrder((Exactly("["), _some(Rule(ANY)), Exactly("]")))
    mapped = InOrder((Exactly("{"), _some(pair), Exactly("}")))
    return OneOf((*SCALARS.values(), listed, mapped))


def _some(part: Written) -> Written:
    """None, or some with commas between them."""
    return Times(InOrder((part, Times(InOrder((COMMA, part))))), 0, 1)


def _fields(schema: Mapping[str, JSON], named: str, depth: int) -> Written:
    """The properties in the schema's order, those that are not required perhaps."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return Exactly("")
    needed = [name for name in properties if isinstance(required, list) and name in required]
    free = [name for name in properties if name not in needed]
    parts: list[Written] = []
    for index, name in enumerate(needed):
        parts.append(_field(named, name, properties[name], depth, comma=index > 0))
    if needed:
        parts += [Times(_field(named, n, properties[n], depth, comma=True), 0, 1) for n in free]
        return InOrder(tuple(parts))
    # Without one that must come, each may be the first.
    ways: list[Written] = [Exactly("")]
    for index, name in enumerate(free):
        rest = [
            Times(_field(named, n, properties[n], depth, comma=True), 0, 1)
            for n in free[index + 1 :]
        ]
        ways.append(InOrder((_field(named, name, properties[name], depth, comma=False), *rest)))
    return OneOf(tuple(ways))


def _field(named: str, name: str, part: JSON, depth: int, *, comma: bool) -> Written:
    head = (", " if comma else "") + named.format(name)
    return InOrder((Exactly(head), _value(part, depth + 1)))


def _value(schema: JSON, depth: int) -> Written:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return Rule(ANY)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(listed, list) and listed:
        return OneOf(tuple([Exactly(_literal(value)) for value in listed]))
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
        return InOrder((Exactly("{"), _fields(schema, "'{}': ", depth), Exactly("}")))
    return Rule(ANY)


def _literal(value: JSON) -> str:
    """As Python writes it, text between single quotes."""
    if isinstance(value, str):
        inner = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return f"'{inner}'"
    return repr(value)
