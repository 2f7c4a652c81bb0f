"""What is drawn from the form of an answer with calls is what the segmenter reads as calls."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from engines.torch.grammar.writing import a_grammar, takes, write
from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import Piece, Segmenter, Spec, Tool, Tools, answer_written, family
from responsory.segments.formats import CALLS
from responsory.segments.written import Written, as_json

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Oslo", "Quito's", 'a "b" </x>']},
        "days": {"type": "integer", "minimum": 1, "maximum": 20},
        "exact": {"type": "boolean"},
        "hours": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [
    Tool("get_weather", parameters=WEATHER, strict=True, place="tools[0].parameters"),
    Tool("ping", parameters={"type": "object", "properties": {}, "additionalProperties": False}),
]
SEEDS = range(12)


def form(node: Written) -> str:
    return json.dumps(as_json(node))


def read(spec: Spec, text: str, tools: list[Tool]) -> tuple[list[tuple[str, str]], str]:
    """The calls in a text, and what of it is text."""
    segmenter = Segmenter(spec, tools=Tools(tools))
    calls: list[tuple[str, str]] = []
    shown, closed = "", 0
    for segment in [*segmenter.feed([Piece(text)]), *segmenter.finish()]:
        if isinstance(segment, CallOpened):
            calls.append((segment.name, ""))
        elif isinstance(segment, CallInput):
            calls[-1] = (calls[-1][0], calls[-1][1] + segment.text)
        elif isinstance(segment, CallClosed):
            closed += 1
        elif isinstance(segment, Text):
            shown += segment.text
    assert closed == len(calls), text
    return calls, shown


def check(calls: list[tuple[str, str]]) -> None:
    for name, arguments in calls:
        value = json.loads(arguments or "{}")
        if name == "get_weather":
            jsonschema.validate(value, WEATHER)
        else:
            assert value == {}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_calls_that_must_come(name: str) -> None:
    spec, ended = family(name), 0
    node = form(answer_written(spec, TOOLS, forced=True, most=3))
    for seed in SEEDS:
        text, whole = write(a_grammar("calls", node), seed, most=600)
        if not whole:
            continue
        ended += 1
        calls, shown = read(spec, text.decode(), TOOLS)
        assert 1 <= len(calls) <= 3, text
        assert not shown, text
        check(calls)
    assert ended >= 6


@pytest.mark.parametrize("name", sorted(CALLS))
def test_calls_that_may_come(name: str) -> None:
    spec = family(name)
    node = form(answer_written(spec, TOOLS, forced=False))
    seen = 0
    for seed in SEEDS:
        text, whole = write(a_grammar("calls", node), seed, most=60)
        if whole:
            check(read(spec, text.decode(errors="replace"), TOOLS)[0])
    for seed in SEEDS:
        called, whole = write(
            a_grammar("calls", form(answer_written(spec, TOOLS, forced=True, most=1))), seed, 600
        )
        if whole:
            seen += 1
            assert takes(a_grammar("calls", node), called.decode()), called
    assert seen
