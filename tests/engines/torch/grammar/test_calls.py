"""What is drawn from the form of an answer with calls is what the segmenter reads as calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from antiphon.engines.torch.grammar.refused import GrammarRefused
from engines.torch.grammar.writing import a_grammar, takes, vocabulary, write
from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import Piece, Segmenter, Spec, Tool, Tools, answer_written, family
from responsory.segments.formats import CALLS
from responsory.segments.written import JsonText, OwnGrammar, Written, as_json

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Oslo", "Quito's", 'a "b" </x>']},
        "days": {"type": "integer", "minimum": 1, "maximum": 20},
        "exact": {"type": "boolean"},
        "note": {"type": "string", "minLength": 1, "maxLength": 6},
        "code": {"type": "string", "pattern": "^[a-z<]{2,5}$"},
        "inner": {"anyOf": [{"$ref": "#/$defs/inner"}, {"type": "null"}]},
        "hours": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    },
    "required": ["city", "days", "note", "code"],
    "additionalProperties": False,
    "$defs": {
        "inner": {
            "type": "object",
            "properties": {"at": {"type": ["number", "null"]}},
            "required": ["at"],
            "additionalProperties": False,
        }
    },
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
    """Any text, and what is a call in it is a right one."""
    spec = family(name)
    node = form(answer_written(spec, TOOLS, forced=False))
    assert takes(a_grammar("calls", node), "It rains, <b>again</b>: f(x) or 'x'.")
    alone = form(answer_written(spec, TOOLS, forced=True, most=1))
    drawn = [write(a_grammar("calls", alone), seed, most=600) for seed in SEEDS]
    ended = [text.decode() for text, whole in drawn if whole]
    assert ended
    assert all(takes(a_grammar("calls", node), text) for text in ended)
    changed = [text.replace("Oslo", "Osla").replace("Quito", "Quita") for text in ended]
    wrong = [other for text, other in zip(ended, changed, strict=True) if other != text]
    assert wrong
    assert not any(takes(a_grammar("calls", node), text) for text in wrong)
    # A call that has begun, in what is free up to there.
    begun, _, _ = next(text for text in ended if "get_weather" in text).partition("get_weather")
    whole = 0
    for seed in SEEDS:
        grammar = a_grammar("calls", node)
        assert takes(grammar, begun + "get_weather")
        text, _ = write(grammar, seed, most=300)
        told = closed_calls(spec, begun + "get_weather" + text.decode(errors="ignore"))
        check(told)
        whole += len(told)
    assert whole >= 4


def closed_calls(spec: Spec, text: str) -> list[tuple[str, str]]:
    """The whole calls in a text that may break off."""
    calls, name, inputs = [], "", ""
    segmenter = Segmenter(spec, tools=Tools(TOOLS))
    for segment in [*segmenter.feed([Piece(text)]), *segmenter.finish(cut=True)]:
        match segment:
            case CallOpened():
                name, inputs = segment.name, ""
            case CallInput():
                inputs += segment.text
            case CallClosed():
                calls.append((name, inputs))
    return calls


def markers_of(spec: Spec) -> tuple[str, ...]:
    """All that is written in angle or square brackets, as far as a family has such markers."""
    node = form(answer_written(spec, TOOLS, forced=True))
    found = re.findall(r"<[^<>\s]{3,}>|\[[A-Z_]{4,}\]", "".join(_texts(json.loads(node))))
    return tuple(dict.fromkeys([*found, *spec.modes[spec.start].markers]))


def _texts(node: Any) -> Iterator[str]:
    match node:
        case ["Exactly", text]:
            yield text
        case [*parts]:
            for part in parts:
                yield from _texts(part)
        case dict():
            for part in node.values():
                yield from _texts(part)


WITH_MARKERS = sorted(
    name for name in CALLS if name not in ("forced", "harmony") and markers_of(family(name))
)


@pytest.mark.parametrize("name", WITH_MARKERS)
def test_markers_that_are_control_tokens(name: str) -> None:
    """They are written as such, and no text that spells one is one."""
    spec = family(name)
    markers = markers_of(spec)
    known = vocabulary(*markers)
    for forced in (True, False):
        node = form(answer_written(spec, TOOLS, forced=forced, most=2))
        ended = 0
        for seed in SEEDS:
            grammar = a_grammar("calls", node, markers=markers)
            text, whole = write(grammar, seed, 300)
            ended += whole
            if whole:
                calls, shown = read(spec, text.decode(errors="replace"), TOOLS)
                assert bool(calls) or not forced
                assert not (forced and shown)
                check(calls)
        assert ended
    assert all(token < 768 for token in known.guide.tokenize_str("".join(markers)))
    node = form(answer_written(spec, TOOLS, forced=True))
    opener = next(iter(spec.modes[spec.start].calls))
    if opener in markers:
        assert not takes(a_grammar("calls", node, markers=markers), opener)


LARK = """start: "say " WORD ("\\n" | "!")*
WORD: /[a-z"\\\\]+/
"""
REGEX = r'[a-c"\\\n]{2,5}'
CUSTOM = [
    Tool("note", "custom", grammar=OwnGrammar("lark", LARK, "tools[0].format")),
    Tool("mark", "custom", grammar=OwnGrammar("regex", REGEX, "tools[1].format")),
]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_input_of_a_custom_tool_holds_to_its_grammar(name: str) -> None:
    spec, ended, seen = family(name), 0, set()
    node = form(answer_written(spec, CUSTOM, forced=True, most=1))
    for seed in range(30):
        text, whole = write(a_grammar("calls", node), seed, most=200)
        if whole:
            ended += 1
            ((called, told),), _ = read(spec, text.decode(), CUSTOM)
            pattern = r'say [a-z"\\]+(\n|!)*' if called == "note" else REGEX
            assert re.fullmatch(pattern, told), (text, told)
            seen.add(called)
    assert ended > 5
    assert seen == {"note", "mark"}


AHEAD: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "string", "pattern": "(?=x)"}},
    "required": ["x"],
    "additionalProperties": False,
}


LOST = [
    (Tool("a", parameters=AHEAD, strict=True, place="p"), "look-around"),
    (Tool("a", "custom", grammar=OwnGrammar("lark", "start: x", "p")), "unknown name"),
    (Tool("a", "custom", grammar=OwnGrammar("regex", "(", "p")), "unclosed"),
]
CONTROL = Tool("a", "custom", grammar=OwnGrammar("lark", 'start: "a" <[3]>', "p"))


@pytest.mark.parametrize(
    ("name", "tool", "words"),
    [
        *(("hermes", *one) for one in LOST),
        *(("qwen3_coder", *one) for one in LOST),
        ("hermes", CONTROL, "control"),  # inside a string of JSON there is no room for one
    ],
)
def test_what_cannot_be_held_to_is_refused_behind_its_place(
    name: str, tool: Tool, words: str
) -> None:
    other = Tool("ping", parameters={"type": "object"}, place="other")
    node = form(answer_written(family(name), [other, tool], forced=True))
    with pytest.raises(GrammarRefused) as refused:
        a_grammar("calls", node)
    assert str(refused.value).startswith("p: ")
    assert words in str(refused.value)


def test_a_form_beside_calls_is_the_answer_or_calls_are() -> None:
    spec = family("hermes")
    node = answer_written(
        spec,
        TOOLS,
        forced=False,
        most=1,
        instead=JsonText({"type": "integer"}, True, "text.format"),
    )
    assert takes(a_grammar("calls", form(node)), "12")
    call = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    assert takes(a_grammar("calls", form(node)), call)
    assert not takes(a_grammar("calls", form(node)), "It rains")
    assert not takes(a_grammar("calls", form(node)), "12 <tool_call>")
