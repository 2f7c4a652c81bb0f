"""The segmenter's quick ways: when they are taken, and that they say what the careful way says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallInput, Reasoning, Text
from responsory.segments import PLAIN, Mode, Piece, Segmenter, Spec, family
from responsory.segments.formats import THINK, THINK_PREFILLED
from responsory.values import Logprob

BEGINS_UNDECIDED = Spec(
    {
        "start": Mode(Reasoning, {"<a>": "start"}, then="answer"),
        "answer": Mode(Text, {"<b>": "start"}),
    },
    "start",
)
"""The first character of all decides what the text is, and no marker came before it."""


class Careful(Segmenter):
    """Never takes a quick way."""

    __slots__ = ()

    def _rest(self) -> None:
        self._at_a_glance, self._in_call = None, None
        self._quiet, self._starts = False, ()


class Watched(Segmenter):
    """Notes which way each step takes."""

    __slots__ = ("way",)

    def _pass_piece(self, piece: Piece) -> list[Any]:
        self.way = "piece"
        return super()._pass_piece(piece)

    def _pass(self, pieces: Sequence[Piece]) -> list[Any]:
        self.way = "step"
        return super()._pass(pieces)

    def _read(self, pieces: Sequence[Piece]) -> list[Any]:
        self.way = "read"
        return super()._read(pieces)


def whole(text: str) -> Piece:
    """One token with its logprob."""
    return Piece(text, (1,), (Logprob(text, -1.0, text.encode()),))


def one(text: str) -> Piece:
    return Piece(text, (1,))


HALF = Piece("", (1,), (Logprob("", -1.0, b"\xc3"),))
OTHER_HALF = Piece("é", (1,), (Logprob("", -1.0, b"\xa9"),))
TWO_TOKENS = Piece("ab", (1, 2), tuple(Logprob(t, -1.0, t.encode()) for t in "ab"))
NOT_ITS_TEXT = Piece("a", (1,), (Logprob("<|x|>", -1.0, b"<|x|>"),))
THINKING = "<think>"
CALLS = family("think+hermes")
NAMED = '<tool_call>{"name": "f"'
ENTERED = NAMED + ', "arguments": {"a": "'
BROKEN = NAMED + ', "arguments": {;'
ZED = Spec({"answer": Mode(Text, {"Z": "answer"})}, "answer")

WAYS: list[tuple[Spec, dict[str, Any], list[list[Piece] | str], str]] = [
    (PLAIN, {}, ["a", " ", "b "], "glance glance glance"),
    (PLAIN, {}, ["a", "", "b"], "glance read read"),
    (PLAIN, {}, [[], "a"], "read glance"),
    (PLAIN, {}, [[Piece("a")], [Piece("a", (1, 2))]], "glance glance"),
    (PLAIN, {}, [[one("a"), one("b ")]], "step"),
    (PLAIN, {}, [[one(""), one("a")], [one("a"), one("")]], "step read"),
    (PLAIN, {}, [[whole("a")], [whole("a"), whole("b")]], "piece step"),
    (PLAIN, {}, [[HALF], [OTHER_HALF], [whole("a")]], "read read piece"),
    (PLAIN, {}, [[TWO_TOKENS], "a"], "read glance"),
    (PLAIN, {}, [[whole("a"), TWO_TOKENS], [TWO_TOKENS, whole("a")]], "read read"),
    (PLAIN, {}, [[one("a"), TWO_TOKENS], [TWO_TOKENS, one("a")]], "read read"),
    (PLAIN, {}, [[NOT_ITS_TEXT], "a"], "read glance"),
    (PLAIN, {"stop": ["x"]}, ["a", [one("a"), one("b")]], "piece step"),
    (PLAIN, {"stop": ["x"]}, [[whole("a")], "a"], "read piece"),
    (PLAIN, {"stop": ["x"]}, [[whole("a"), whole("b")], "a"], "read piece"),
    (PLAIN, {"stop": ["x"]}, ["a "], "piece"),
    (PLAIN, {"stop": ["xxy"]}, [[one("x"), one("x")], "z"], "step piece"),
    (PLAIN, {"stop": ["xy"]}, ["x", "z", "x", "y", "a"], "piece piece piece piece read"),
    (PLAIN, {"stop": ["x"]}, [[one("a"), one("x")], "a"], "step read"),
    (THINK, {}, ["a", " a"], "glance glance"),
    (THINK, {}, ["a ", "b", "c"], "read read glance"),
    (THINK, {}, ["a<b", "c", "<", "b", "c"], "read glance read read glance"),
    (THINK, {}, [[one("a "), one("b")]], "step"),
    (THINK, {}, [[one("a"), one("b ")], "c"], "read read"),
    (THINK, {}, [[one("<"), one("b")], [one("b"), one("<b")]], "read read"),
    (THINK, {}, [THINKING, "a", "b", [one("c"), one("d")]], "read read glance step"),
    (THINK, {}, [THINKING, "a", [whole("b")], "</think>"], "read read piece read"),
    (THINK, {"reasoning": False}, ["a", THINKING, "b", "c"], "glance read read piece"),
    (THINK, {"reasoning": False}, [[one("a"), one("b")]], "step"),
    (THINK, {"reasoning": False}, [THINKING, "b", [one("c"), one("d")]], "read read step"),
    (THINK, {"stop": ["x"]}, [THINKING, "a", "x"], "read read piece"),
    (THINK, {"stop": ["x"]}, [THINKING, "a", [one("x"), one("b")]], "read read step"),
    (THINK, {"stop": ["x"]}, ["a ", "b", "a", "<"], "read read piece read"),
    (THINK_PREFILLED, {}, ["a", "b"], "read glance"),
    (BEGINS_UNDECIDED, {}, ["a", "b"], "read glance"),
    (ZED, {}, [[one("a"), one("b")]], "step"),
    (CALLS, {}, ["a", "<tool_call>", "b", "c"], "glance read read glance"),
    (CALLS, {}, [NAMED, "}", "</tool_call>", "b", "c"], "read read read read glance"),
    (CALLS, {}, [ENTERED, "a", [one("b"), one("c")], '"}'], "read glance read read"),
    (CALLS, {}, [ENTERED, '", "', 'b": [', "1", "]", "}"], "read glance glance glance glance read"),
    (CALLS, {}, [BROKEN, "a", [one("b"), one("c")], "d"], "read read read read"),
    (CALLS, {"calls": False}, [ENTERED, "a", "b"], "read glance glance"),
    (CALLS, {"parallel": False}, [NAMED, "} a", "b"], "read read read"),
    (CALLS, {"parallel": False}, ["a", [one("b"), one("c")]], "glance step"),
    (CALLS, {"tokens": True}, ["a", [one("b"), one("c")], [whole("a")]], "piece step piece"),
    (CALLS, {"tokens": True}, ["a ", "b", "c"], "read read piece"),
    (CALLS, {"tokens": True}, [THINKING, "b", "c", "d"], "read read piece piece"),
    (CALLS, {"tokens": True}, [NAMED, "}</tool_call>", "c", "d"], "read read read piece"),
    (CALLS, {"tokens": True, "stop": ["x"]}, ["a", [one("b"), one("c")]], "read read"),
    (
        THINK,
        {"tokens": True, "reasoning": False},
        ["a", THINKING, "b", "c"],
        "piece read read read",
    ),
    (PLAIN, {"tokens": True}, ["", "a", "b"], "read read piece"),
]


@pytest.mark.parametrize(("spec", "options", "steps", "ways"), WAYS)
def test_which_way_a_step_takes(
    spec: Spec, options: dict[str, Any], steps: list[list[Piece] | str], ways: str
) -> None:
    segmenter, careful = Watched(spec, **options), Careful(spec, **options)
    taken = []
    for step in steps:
        pieces = [one(step)] if isinstance(step, str) else step
        segmenter.way = "glance"
        assert segmenter.feed(pieces) == careful.feed(pieces)
        assert told(segmenter) == told(careful)
        taken.append(segmenter.way)
    assert taken == ways.split()


TEXTS = (
    "", "a", "b c", "x", "y", "xy", " ", "a ", "\n", "é", "<", "<think>", "<thi", "nk>", "</think>",
    "a</think>b", "<a>", "<b>", "<tool_call>", NAMED, ENTERED, BROKEN, '"}', "}", "</tool_call>",
)  # fmt: skip


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    text = draw(st.sampled_from(TEXTS))
    data = text.encode()
    cut = draw(st.integers(0, len(data)))
    spelled = draw(
        st.sampled_from([(), (), (data,), (data[:cut], data[cut:]), (b"\xc3",), (b"<|x|>",)])
    )
    ids = draw(st.sampled_from([len(spelled), len(spelled), 0, 1, 2]))
    named = tuple(Logprob("?", -float(at), part) for at, part in enumerate(spelled))
    return Piece(text, tuple(range(ids)), named)


OPTIONS = st.fixed_dictionaries(
    {
        "stop": st.sampled_from([(), (), ("xy",), ("y", "ax"), ("a b",)]),
        "include_stop": st.booleans(),
        "reasoning": st.booleans(),
        "calls": st.booleans(),
        "parallel": st.booleans(),
        "tokens": st.booleans(),
    }
)
STEPS = st.lists(st.lists(pieces(), max_size=3), max_size=6)


@given(
    st.sampled_from([PLAIN, THINK, THINK_PREFILLED, BEGINS_UNDECIDED, CALLS]), OPTIONS, STEPS
)  # fmt: skip
def test_the_quick_ways_say_what_the_careful_way_says(
    spec: Spec, options: dict[str, Any], steps: list[list[Piece]]
) -> None:
    quick, careful = Segmenter(spec, **options), Careful(spec, **options)
    for step in steps:
        assert quick.feed(step) == careful.feed(step)
        assert told(quick) == told(careful)
    assert quick.finish() == careful.finish()
    assert told(quick) == told(careful)


@given(
    st.sampled_from([PLAIN, THINK, THINK_PREFILLED, BEGINS_UNDECIDED, CALLS]),
    OPTIONS,
    st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(0, 2)), max_size=8),
)
def test_a_glance_says_what_a_feed_says_or_takes_nothing(
    spec: Spec, options: dict[str, Any], texts: list[tuple[str, int]]
) -> None:
    glancing, careful = Segmenter(spec, **options), Careful(spec, **options)
    for text, ids in texts:
        before, piece = told(glancing), Piece(text, tuple(range(ids)))
        segment = glancing.glance(text, ids)
        if segment is None:
            assert told(glancing) == before
        shown = glancing.feed([piece]) if segment is None else [segment]
        assert shown == careful.feed([piece])
        assert careful.glance(text, ids) is None
        assert told(glancing) == told(careful)
    assert glancing.finish() == careful.finish()
    assert told(glancing) == told(careful)


def test_what_a_glance_takes() -> None:
    """Text of one token, where nothing is looked for in it."""
    plain = Segmenter()
    assert (plain.glance("a "), plain.glance("")) == (Text("a "), None)
    assert plain.output_tokens == 1
    assert (plain.glance("b", 2), plain.output_tokens) == (Text("b"), 3)
    think = Segmenter(THINK)
    think.feed([one(THINKING)])
    think.feed([one("a")])
    glances = [think.glance(text) for text in ("b", "c ", "<", "d")]
    assert glances == [Reasoning("b"), None, None, Reasoning("d")]
    assert (think.output_tokens, think.reasoning_tokens) == (4, 3)
    for options in ({"stop": "x"}, {"tokens": True}):
        assert Segmenter(**options).glance("a") is None


def told(segmenter: Segmenter) -> tuple[object, ...]:
    return (
        segmenter.stop,
        segmenter.ended,
        segmenter.output_tokens,
        segmenter.reasoning_tokens,
        segmenter.rest,
    )


# Each of these is a step that looks clean, and is not: something that came before is not done.


def both(*steps: list[Piece], spec: Spec = THINK, **options: Any) -> tuple[list[Any], Segmenter]:
    """The segments of the quick ways, after a comparison."""
    quick, careful = Segmenter(spec, **options), Careful(spec, **options)
    shown: list[Any] = []
    for step in steps:
        shown += quick.feed(step)
        careful.feed(step)
        assert told(quick) == told(careful)
    shown += quick.finish()
    careful.finish()
    assert told(quick) == told(careful)
    return shown, quick


def test_what_is_held_comes_before_what_looks_clean() -> None:
    """Without ids, so that no token is pending."""
    shown, _ = both([Piece("<thi")], [Piece("a")])
    assert shown == [Text("<thia")]
    shown, _ = both([Piece("a ")], [Piece("b")])
    assert shown == [Text("a"), Text(" b")]
    shown, _ = both([Piece("a")], [Piece("b<a>c")], spec=BEGINS_UNDECIDED)
    assert shown == [Text("a"), Text("b<a>c")]


def test_a_logprob_without_text_rides_on_text_that_has_none() -> None:
    """Without ids, so that no token is pending."""
    shown, _ = both([Piece("a", (), whole("a").logprobs + HALF.logprobs)], [Piece("é")], spec=PLAIN)
    assert shown == [Text("a", whole("a").logprobs), Text("é", HALF.logprobs)]


def test_a_logprob_that_is_held_rides_on_its_text() -> None:
    shown, _ = both([whole("x")], [one("z")], spec=PLAIN, stop=["xy"])
    assert shown == [Text("xz", whole("x").logprobs)]


def test_a_token_without_text_is_of_the_next_character() -> None:
    """Reasoning here, though the text that follows looks clean and a marker comes after it."""
    _, segmenter = both([one("")], [one("a")], [one("</think>")], spec=THINK_PREFILLED)
    assert segmenter.reasoning_tokens == 2


def test_what_looks_clean_in_arguments_is_of_them() -> None:
    shown, _ = both([Piece(ENTERED)], [Piece("a")], [Piece("b")], spec=CALLS)
    assert shown[1:] == [CallInput('{"a": "'), CallInput("a"), CallInput("b")]
    shown, _ = both([Piece(BROKEN)], [Piece("a")], [Piece("b")], spec=CALLS)
    assert shown[1:] == [CallInput("{;"), CallInput("a"), CallInput("b")]


def test_hidden_reasoning_is_hidden_on_every_way() -> None:
    steps = [one("<think>")], [one("a")], [one("b")], [one("c"), one("d")], [one("</think>")]
    shown, segmenter = both(*steps, [one("e")], reasoning=False)
    assert shown == [Text("e")]
    assert segmenter.reasoning_tokens == 4
