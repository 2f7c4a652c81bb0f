"""What each family's form writes as a grammar is what its reader reads: calls, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import Piece, Segmenter, Spec, Tool, Tools, family
from responsory.segments.formats import CALLS, Call
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    Matching,
    OneOf,
    Rule,
    Rules,
    TextWithout,
    Times,
    Written,
    as_json,
)

LITERAL = {"pythonic", "lfm2", "gemma4"}
"""These write no JSON, and are drawn from where their literals are tried."""

WEATHER = Tool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer"},
        },
        "required": ["city", "unit"],
    },
)
TOOLS = [WEATHER, Tool("ping"), Tool("note", "custom")]
JSON: dict[str, list[dict[str, Any]]] = {
    "get_weather": [{"city": "Zürich", "unit": "C"}, {"city": 'a "b" }', "unit": "F", "days": -3}],
    "ping": [{}],
    "note": [{"input": "a\nb"}, {"input": ""}],
}


def drawn(
    node: Written, draw: Random, name: str, rules: Mapping[str, Written] | None = None
) -> str:
    """A text of the node; ``name``: the tool whose arguments a JSON text is."""
    rules = rules or {}
    match node:
        case Exactly(text):
            return text
        case JsonText(schema, _, _):
            if schema is not None and schema.get("type") == "integer":
                return str(draw.randint(-9, 9))
            return json.dumps(draw.choice(JSON[name]), ensure_ascii=False)
        case Matching():
            return "any_key"
        case TextWithout():
            return draw.choice(["Oslo", "", "a <b> c", "x\ny"])
        case InOrder(parts):
            return "".join(drawn(part, draw, _named(part, name, parts), rules) for part in parts)
        case OneOf(parts):
            index = draw.randrange(len(parts))
            called = TOOLS[index].name if len(parts) == 3 else name
            return drawn(parts[index], draw, called, rules)
        case Times(part, least, most):
            times = draw.randint(least, least + 1 if most is None else most)
            return "".join(drawn(part, draw, name, rules) for _ in range(times))
        case Rules(start, inner):
            return drawn(start, draw, name, {**rules, **inner})
        case Rule(rule):
            return drawn(rules[rule], draw, name, rules)
        case _:
            raise AssertionError(node)


def _named(part: Written, name: str, parts: tuple[Written, ...]) -> str:
    """The tool of a call is the one that its head names."""
    texts = " ".join(one.text for one in parts if isinstance(one, Exactly))
    return next((tool.name for tool in TOOLS if tool.name in texts), name)


def opener_of(spec: Spec) -> tuple[str, Call]:
    """The first opener where an answer begins."""
    return next(iter(spec.modes[spec.start].calls.items()))


@pytest.mark.parametrize("name", sorted(CALLS.keys() - LITERAL))
def test_what_is_written_is_read(name: str) -> None:
    spec, draw = family(name), Random(name)
    opener, call = opener_of(spec)
    form = call.format
    for _ in range(40):
        most = draw.randint(1, 3)
        text = opener + drawn(form.written(TOOLS, most=most), draw, "")
        segmenter = Segmenter(spec, tools=Tools(TOOLS))
        segments = [*segmenter.feed([Piece(text)]), *segmenter.finish()]
        opened = [one for one in segments if isinstance(one, CallOpened)]
        assert 1 <= len(opened) <= (most if form.several else 1), text
        assert sum(isinstance(one, CallClosed) for one in segments) == len(opened), text
        assert not [one for one in segments if isinstance(one, Text)], text
        _check_inputs(segments)


def _check_inputs(segments: list[Any]) -> None:
    name, inputs = "", ""
    for segment in segments:
        if isinstance(segment, CallOpened):
            name, inputs = segment.name, ""
        elif isinstance(segment, CallInput):
            inputs += segment.text
        elif name != "note":
            value = json.loads(inputs)
            if name == "get_weather":
                assert {"city", "unit"} <= value.keys() <= {"city", "unit", "days"}
                assert value["unit"] in ("C", "F")
                assert isinstance(value.get("days", 0), int)
            else:
                assert value.keys() <= {"any_key"}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_form_can_cross_as_json(name: str) -> None:
    _, call = opener_of(family(name))
    lists = as_json(call.format.written(TOOLS, most=2))
    assert json.loads(json.dumps(lists)) == lists
