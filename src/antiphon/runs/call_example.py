"""A call as a family writes it, made of the family's own form: what a template's can be held up to.

It is one call of one tool with one argument, a text of letters, so every family can write it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from antiphon.prompting.probes import KEY, NAME, VALUE
from responsory.segments import Spec, Tool
from responsory.segments.holding import answer_written
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    OneOf,
    Rule,
    Rules,
    TextWithout,
    Times,
    Written,
)

TOOL = Tool(
    NAME,
    parameters={
        "type": "object",
        "properties": {KEY: {"type": "string", "enum": [VALUE]}},
        "required": [KEY],
    },
)


def example(spec: Spec) -> str:
    """The call as the family of ``spec`` writes it; empty for one that writes none."""
    try:
        return _text(answer_written(spec, [TOOL], forced=True, most=1), {})
    except (ValueError, NotImplementedError):
        return ""


def spelled_call(spec: Spec) -> str:
    """The same to be shown to a model, which is to put its own words in."""
    called = example(spec).replace(NAME, "name_of_the_tool")
    return called.replace(KEY, "name_of_an_argument").replace(VALUE, "its value")


def fixed_parts(spec: Spec) -> list[str]:
    """What of it is the same whatever is called, in order."""
    pieces = example(spec).replace(VALUE, "\0").replace(KEY, "\0").replace(NAME, "\0")
    return [piece.strip() for piece in pieces.split("\0") if piece.strip()]


def _text(node: Written, rules: Mapping[str, Written]) -> str:
    match node:
        case Exactly(text):
            return text
        case JsonText():
            return json.dumps({KEY: VALUE})
        case InOrder(parts):
            return "".join(_text(part, rules) for part in parts)
        case OneOf(parts):
            return _text(parts[0], rules)
        case Times(part, least, _):
            return _text(part, rules) * least
        case Rules(start, inner):
            return _text(start, {**rules, **inner})
        case Rule(name):
            return _text(rules[name], rules)
        case TextWithout():
            return VALUE
    raise ValueError(f"a call of one text has no {type(node).__name__}")
