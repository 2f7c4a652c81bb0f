"""A call between tags as a grammar, made of the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.immutable import immutable
from responsory.segments.formats.schema_written import NOTES, TEXTS, own_text, text_regex
from responsory.segments.formats.value_types import property_types
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    Matching,
    OneOf,
    TextWithout,
    Times,
    Unwritable,
)

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

STRING = frozenset({"string"})
KEY = r"[A-Za-z_][A-Za-z0-9_]{0,40}"
"""A parameter of which the schema says nothing."""


@immutable
class TagsWritten:
    """How a model writes such a call, from its name on: what stands before and behind the name, a
    key (of a string, of another value) and a value, and at the end."""

    name: tuple[str, str]
    key: tuple[str, str, str]
    value: str
    end: str


def tagged_written(tags: TagsWritten, value_end: str, tools: Sequence[Tool]) -> Written:
    """One call of one of the tools."""
    return OneOf(tuple([_call(tags, value_end, tool) for tool in tools]))


def _call(tags: TagsWritten, value_end: str, tool: Tool) -> Written:
    before, behind = tags.name
    parameters = _parameters(tags, value_end, tool)
    return InOrder((Exactly(before + tool.name + behind), *parameters, Exactly(tags.end)))


def _parameters(tags: TagsWritten, value_end: str, tool: Tool) -> list[Written]:
    text = TextWithout((value_end,))
    if tool.kind == "custom":
        own = text if tool.grammar is None else own_text(tool.grammar, value_end)
        return [_parameter(tags, Exactly("input"), own, string=True)]
    schema = tool.parameters or {}
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or (not properties and not required):
        free = schema.get("additionalProperties", True) is not False and tool.parameters is None
        return [Times(_parameter(tags, Matching(KEY), text, string=True))] if free else []
    needed = required if isinstance(required, list) else []
    made = []
    for name, part in properties.items():
        strings = property_types(schema, name) == STRING
        value = _string(part, value_end, tool) if strings else _typed(schema, part, tool)
        one = _parameter(tags, Exactly(name), value, string=strings)
        made.append(one if name in needed else Times(one, 0, 1))
    return made


def _parameter(tags: TagsWritten, key: Written, value: Written, *, string: bool) -> Written:
    before, of_string, of_other = tags.key
    behind = of_string if string else of_other
    return InOrder((Exactly(before), key, Exactly(behind), value, Exactly(tags.value)))


def _string(part: JSON, value_end: str, tool: Tool) -> Written:
    """Text of which the schema lists all there is, or says what it matches, or any."""
    if not isinstance(part, Mapping):
        return TextWithout((value_end,))
    listed = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(listed, list) and listed:
        return OneOf(tuple([Exactly(one) for one in listed if isinstance(one, str)]))
    beyond = part.keys() - NOTES - {"type"}
    regex = text_regex(part) if beyond else ""
    if tool.strict and (regex is None or not beyond <= TEXTS):
        words = f"this model's form cannot hold text to {' and '.join(sorted(beyond))}"
        raise Unwritable(tool.place, words)
    return TextWithout((value_end,), regex=regex or "", place=tool.place if regex else "")


def _typed(schema: Mapping[str, JSON], part: JSON, tool: Tool) -> Written:
    """JSON of the property's schema, with the definitions that it may refer to."""
    inner = dict(part) if isinstance(part, Mapping) else {}
    for key in ("$defs", "definitions"):
        if key in schema:
            inner.setdefault(key, schema[key])
    return JsonText(json.loads(json.dumps(inner)), tool.strict, tool.place)
