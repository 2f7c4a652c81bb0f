"""Calls are the same for any cut of the text, and families of one's own need no other machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import FORMATS, PLAIN, Mode, Piece, Segmenter, Spec, family
from responsory.segments.formats import (
    Call,
    CallFormat,
    CallReader,
    JsonEnvelope,
    Part,
    Verdict,
    with_calls,
)
from responsory.segments.json_value import JsonValue
from responsory.segments.markup import Scanner
from responsory.segments.tools import Tools
from responsory.testing.strategies import splits

FAMILIES = ("hermes", "think+hermes", "think_prefilled+hermes")


def run(parts: Iterable[str], spec: Spec, *, cut: bool = False, **options: Any) -> list[Any]:
    """The commands, those of one item joined."""
    segmenter = Segmenter(spec, **options)
    commands: list[Any] = []
    for part in [*parts, None]:
        found = segmenter.finish(cut=cut) if part is None else segmenter.feed([Piece(part, (1,))])
        for command in found:
            last = commands[-1] if commands else None
            if isinstance(command, Text | Reasoning | CallInput) and type(command) is type(last):
                commands[-1] = type(command)(last.text + command.text)
            else:
                commands.append(command)
    return commands


# --- texts whose meaning is known, since they are made of it -------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.sampled_from('a"\\{}[]<>/\n é😀'))
    | st.sampled_from(["</tool_call>", "<tool_call>", '{"name": "f"}', "<think>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=3),
    max_leaves=8,
)  # fmt: skip
SPACE = st.sampled_from(["", " ", "\n", "\r\n\t "])
NAMES = st.text(min_size=1, max_size=4)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A call as text, with its keys in any order, and the commands for it."""
    name = draw(NAMES)
    value = draw(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
    indent, ascii_only = draw(st.sampled_from([None, 1])), draw(st.booleans())
    arguments = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    fields = [("name", json.dumps(name, ensure_ascii=ascii_only)), ("id", json.dumps(draw(VALUES)))]
    shown = "{}"
    if draw(st.booleans()):
        fields.append(("arguments", arguments))
        shown = arguments
    space = draw(SPACE)
    envelope = f"{space},{space}".join(
        f'"{key}"{space}:{draw(SPACE)}{text}' for key, text in draw(st.permutations(fields))
    )
    text = f"<tool_call>{draw(SPACE)}{{{space}{envelope}{space}}}{draw(SPACE)}</tool_call>"
    return text, [CallOpened("function", name), CallInput(shown), CallClosed()]


PROSE = st.lists(
    st.sampled_from(["a", "b c", "é😀", "<", "<tool", "tool_call>", "<tool_call>?", "</tool_call>.",
                     '<tool_call>{"a"', "{", '"']),
    min_size=1, max_size=4,
).map("".join).filter(lambda text: text.endswith(("a", "c", "?", ".")))  # fmt: skip


@given(st.lists(st.tuples(SPACE, PROSE | st.just(""), SPACE, calls()), max_size=3), st.data())
def test_calls_between_prose(made: list[Any], data: st.DataObject) -> None:
    text, expected = "", []
    for before, prose, after, (call, commands) in made:
        inner = before if prose and not text else ""
        text += before + prose + after + call
        expected += [Text(inner + prose)] if prose else []
        expected += commands
    spec = FORMATS["hermes"]
    parts = data.draw(splits(text))
    assert run(parts, spec) == run([text], spec) == run(text, spec) == expected


# --- any text at all -----------------------------------------------------------------------------

MARKUP = st.lists(
    st.sampled_from(
        ["<think>", "</think>", " ", "\n", "a", "<", "é😀", "<tool_call>", '{"name": "f"', "{", "}",
         ', "arguments": {"x": ', '"', ",", ":", "[", "]", "\\", "1}", "</tool_call>", "null", "x",
         "</tool_call", '"arguments"', '"name"', '{"arguments": ',
         '<tool_call>{"name":"g","arguments":{"y":2}}</tool_call>']
    ),
    max_size=14,
).map("".join)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {
        "stop": st.sampled_from([(), (), ("a",), ("x", '"'), ("<tool_call>",), ("} <",)]),
        "include_stop": st.booleans(),
        "reasoning": st.booleans(),
        "calls": st.sampled_from([True, True, True, False]),
        "parallel": st.booleans(),
        "cut": st.booleans(),
    }
)


@given(st.sampled_from(FAMILIES), MARKUP, OPTIONS, st.data())
def test_any_cut_gives_the_same(
    name: str, text: str, options: dict[str, Any], data: st.DataObject
) -> None:
    spec, parts = family(name), data.draw(splits(text))
    whole = run([text], spec, **options)
    assert run(parts, spec, **options) == whole
    assert run(text, spec, **options) == whole


@pytest.mark.parametrize("text", [" <tool_call>", 'a <tool_call>{"', " <tool_call>{} ", "a </tool"])
def test_regions_of_what_a_cut_drops(text: str) -> None:
    scanner = Scanner(family("hermes"))
    regions = scanner.feed(text) + scanner.flush(cut=True)
    assert regions[-1].end == len(text)


@given(MARKUP, st.booleans(), st.data())
def test_regions_tile_the_text(text: str, cut: bool, data: st.DataObject) -> None:
    """None is missing; only those of calls are empty or show what is not there."""
    scanner = Scanner(family("think+hermes"))
    regions = [region for part in data.draw(splits(text)) for region in scanner.feed(part)]
    regions += scanner.flush(cut=cut)
    borders = [0, *(region.end for region in regions)]
    assert [region.start for region in regions] == borders[:-1]
    assert borders[-1] == len(text)
    for region in regions:
        covered = text[region.start : region.end]
        if region.channel is Text or region.channel is Reasoning:
            assert covered
            assert region.text == covered or (region.text == "" and covered.isspace())
        elif region.channel is None:
            assert region.text == ""


@given(MARKUP)
def test_nothing_is_lost_where_no_call_is(text: str) -> None:
    """What is not shown is white space that touches a marker."""
    commands = run([text], FORMATS["hermes"])
    if not any(isinstance(command, CallOpened) for command in commands):
        assert commands == ([Text(text)] if text else [])


# --- where a JSON value ends ---------------------------------------------------------------------


@given(VALUES, st.sampled_from([None, 2]), st.text(max_size=3), st.data())
def test_a_value_ends_where_it_ends(
    value: Any, indent: int | None, rest: str, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    reader, at = JsonValue(), 0
    for part in data.draw(splits(f" {text},{rest}")):
        at += reader.read(part, 0)
        assert not reader.broken
        if reader.complete:
            break
    assert reader.complete
    assert at == 1 + len(text)
    assert reader.read("1", 0) == 0, "no more is read"


@given(st.text('{}[]",:a1 \\', max_size=12), st.data())
def test_what_json_accepts_is_accepted(text: str, data: st.DataObject) -> None:
    """And what is left of a value that breaks was not read."""
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    except ValueError:
        return
    reader, at = JsonValue(), 0
    for part in data.draw(splits(text + ",")):
        at += reader.read(part, 0)
        if reader.complete:
            break
    assert reader.complete
    spaces = len(text) - len(text.lstrip())
    # A word is read to its end: 1a is one word here, and a number with something behind it there.
    assert at >= spaces + end
    assert re.fullmatch(r"[\w+\-.]*", text[spaces + end : at])


# --- families of one's own -----------------------------------------------------------------------


class AtReader(CallReader):
    """``@name(anything)``, two or more joined by ``&``: arguments are made, not copied."""

    def __init__(self) -> None:
        super().__init__()
        self._name: str | None = None
        self._seen = ""

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        parts = []
        while at < len(text) and self.verdict is Verdict.READING:
            char, end = text[at], at + 1
            if self._name is None and char == "(" and self._seen:
                self._name, self._seen = self._seen, ""
                parts.append(Part(end, CallOpened("function", self._name)))
                parts.append(Part(end, CallInput('{"text": "')))
            elif self._name is None:
                if not char.isalpha():
                    self.verdict = Verdict.PROSE
                    break
                self._seen += char
            elif char == "!":
                self.verdict = Verdict.BROKEN
                break
            elif char == ")":
                following = text[end : end + 1]
                if not following:
                    break
                parts.append(Part(end, CallInput('"}')))
                parts.append(Part(end, CallClosed()))
                self._name, end = None, end + (following == "&")
                self.verdict = Verdict.READING if following == "&" else Verdict.OVER
            else:
                parts.append(Part(end, CallInput(char.upper())))
            at = end
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        return [] if cut else [CallInput('"?'), CallClosed()]


class AtCalls(CallFormat):
    @property
    def closer(self) -> str:
        return ")"

    def reader(self, tools: Tools) -> AtReader:
        return AtReader()


def at_call(name: str, arguments: str) -> list[Any]:
    return [CallOpened("function", name), CallInput(arguments), CallClosed()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi @f(ab)!", [Text("Hi"), *at_call("f", '{"text": "AB"}'), Text("!")]),
        ("a@ @1 @", [Text("a@ @1 @")]),
        ("@f(a!b c )d", [*at_call("f", '{"text": "A!b c'), Text("d")]),
        ("@f(a", at_call("f", '{"text": "A"?')),
        ("@f(a)", at_call("f", '{"text": "A"?')),
        ("<think>@f()x", [*at_call("f", '{"text": ""}'), Text("x")]),
        (
            "@f(a)&g(b) c",
            [*at_call("f", '{"text": "A"}'), *at_call("g", '{"text": "B"}'), Text("c")],
        ),
    ],
)
def test_a_family_of_ones_own(text: str, expected: list[Any]) -> None:
    spec = with_calls(FORMATS["think"], "@", AtCalls())
    for at in range(len(text) + 1):
        assert run([text[:at], text[at:]], spec) == expected
    assert run(text, spec) == expected


def test_the_first_call_alone_of_several_behind_one_opener() -> None:
    """What comes behind it is neither shown nor counted, in any cut."""
    for spec, first, rest, call in (
        (with_calls(PLAIN, "@", AtCalls()), "a @f(b)", "&g(c) d", at_call("f", '{"text": "B"}')),
        (family("mistral_array"), 'a [TOOL_CALLS] [{"name": "f"}', ', {"name": "g"}] d',
         at_call("f", "{}")),
    ):  # fmt: skip
        text = first + rest
        for parts in ([text], list(text), *([text[:at], text[at:]] for at in range(len(text)))):
            assert run(parts, spec, parallel=False) == [Text("a"), *call]
        segmenter = Segmenter(spec, parallel=False)
        for char in text:
            segmenter.feed([Piece(char, (1,))])
        assert segmenter.ended
        assert segmenter.output_tokens == len(first)


def test_an_envelope_of_ones_own() -> None:
    """Other keys, and no closer: the call is over with its last bracket."""
    spec = with_calls(PLAIN, "<|call|>", JsonEnvelope("", names=("tool",), arguments=("input",)))
    text = 'a <|call|>{"input": [1], "tool": "f"}\nb<|call|>{"name": "g"}'
    expected = [Text("a"), *at_call("f", "[1]"), Text('b<|call|>{"name": "g"}')]
    for at in range(len(text) + 1):
        assert run([text[:at], text[at:]], spec) == expected
    text = '<|call|>{"tool": "f"}<|call|>{"tool": "g", "input": {} ; c'
    assert run(text, spec) == [*at_call("f", "{}"), *at_call("g", "{}"), Text("; c")]
    # Nothing ends arguments that break, but the end.
    text = '<|call|>{"tool": "f", "input": {; <|call|> '
    assert run(text, spec) == at_call("f", "{; <|call|> ")[:2]


def test_two_kinds_of_calls_in_one_family() -> None:
    spec = with_calls(FORMATS["hermes"], "@", AtCalls(), broken="at")
    text = '@f(<tool_call>)<tool_call>{"name": "g"}</tool_call>@h()'
    expected = [*at_call("f", '{"text": "<TOOL_CALL>"}'), *at_call("g", "{}"),
                *at_call("h", '{"text": ""?')]  # fmt: skip
    for at in range(len(text) + 1):
        assert run([text[:at], text[at:]], spec) == expected


def test_an_opener_before_any_text_alone() -> None:
    """Bare JSON is a call where the answer begins with it, and text later."""
    call = Call(JsonEnvelope("", names=("fn",)), "text", "broken")
    spec = Spec(
        {
            "start": Mode(Text, then="text", calls={"=": call}),
            "text": Mode(Text, {"#": "text"}),
            "broken": Mode(CallInput, {"#": "text"}),
        },
        "start",
    )
    for text, expected in (
        (' \n={"fn": "f"} ={"fn": "g"}', [*at_call("f", "{}"), Text('={"fn": "g"}')]),
        ("={fn} a # b", [Text("={fn} ab")]),
        (' \n= {"fn', [Text(' \n= {"fn')]),
        ("a={", [Text("a={")]),
    ):
        for at in range(len(text) + 1):
            assert run([text[:at], text[at:]], spec) == expected


def test_names_of_families() -> None:
    assert family("think") is FORMATS["think"]
    assert family("hermes") == FORMATS["hermes"]
    assert family("think+hermes") is family("think+hermes")
    assert family("plain+hermes") == FORMATS["hermes"]
    assert family("hermes").without_calls.modes["answer"] == PLAIN.modes["answer"]
    assert family("think").without_calls is family("think")
    assert family("think+hermes", reasoning=False) == family("hermes", reasoning=False)
    assert family("hermes", reasoning=False) == FORMATS["hermes"]
    assert family("think", reasoning=False) is PLAIN
    for name in ("", "nope", "think+nope", "hermes+think", "think+think", "+hermes", "think+"):
        with pytest.raises(KeyError, match=r"there are cohere_thinking, .* of calls .*, hermes, "):
            family(name)


def test_specs_of_calls_that_mean_nothing_are_refused() -> None:
    call = Call(JsonEnvelope("]"), "answer", "broken")
    with pytest.raises(ValueError, match="no such mode: broken"):
        Spec({"answer": Mode(Text, calls={"[": call})}, "answer")
    with pytest.raises(ValueError, match=r"what breaks behind '\[' is not read as CallInput"):
        Spec({"answer": Mode(Text, calls={"[": Call(JsonEnvelope("]"), "answer", "answer")})},
             "answer")  # fmt: skip
    with pytest.raises(ValueError, match="the marker '<' is inside the marker '<think>'"):
        with_calls(FORMATS["think"], "<", JsonEnvelope(">"))
    with pytest.raises(ValueError, match="begins or ends in space"):
        with_calls(PLAIN, "call ", JsonEnvelope("end"))
