"""Reasoning between markers: the same segments, counts and logprobs for any cut of the text."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import Reasoning, Text
from responsory.segments import PLAIN, Mode, Piece, Segmenter, Spec
from responsory.segments.formats import (
    REASONING,
    THINK,
    THINK_PREFILLED,
    reasoning_between,
)
from responsory.segments.markup import Scanner
from responsory.testing.strategies import splits
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Shown = list[tuple[str, str]]
"""(channel, text) of what a client sees, neighbours of one channel joined."""


def joined(segments: Iterable[object]) -> Shown:
    shown: Shown = []
    for segment in segments:
        assert isinstance(segment, Text | Reasoning)
        assert segment.text, "no segment is empty"
        channel = type(segment).__name__.lower()
        if shown and shown[-1][0] == channel:
            shown[-1] = (channel, shown[-1][1] + segment.text)
        else:
            shown.append((channel, segment.text))
    return shown


def run(
    steps: Iterable[Sequence[Piece]], spec: Spec = THINK, **options: Any
) -> tuple[list[Any], Segmenter]:
    segmenter = Segmenter(spec, **options)
    segments: list[Any] = []
    for step in steps:
        found = segmenter.feed(step)
        channels = [type(segment) for segment in found]
        assert all(one is not other for one, other in itertools.pairwise(channels))
        segments += found
    return segments + segmenter.finish(), segmenter


def texts(*parts: str) -> list[list[Piece]]:
    """One step for each part, one token each."""
    return [[Piece(part, (at,))] for at, part in enumerate(parts)]


def reference(
    text: str, opener: str = "<think>", closer: str = "</think>", *, prefilled: bool = False
) -> Shown:
    """The whole text at once, with string methods alone."""
    shown: list[Any] = []

    def markup(source: str) -> tuple[str, str]:
        """The text before the first marker, and that marker."""
        found = [(source.find(m), m) for m in (opener, closer) if m in source]
        at, marker = min(found, default=(len(source), ""))
        return source[:at], marker

    after_marker, reasoning = prefilled, prefilled
    while text:
        if reasoning:
            text = text.lstrip()
            if text.startswith(opener):
                text = text.removeprefix(opener)
                continue
            body, found, text = text.partition(closer)
            shown.append(Reasoning(body.rstrip() if found else body))
            reasoning, after_marker = not found, bool(found)
            continue
        body, marker = markup(text)
        text = text[len(body) + len(marker) :]
        body = body.lstrip() if after_marker else body
        shown.append(Text(body.rstrip() if marker else body))
        reasoning, after_marker = marker == opener, bool(marker)
    return joined(segment for segment in shown if segment.text)


# --- one rule at a time -------------------------------------------------------------------------

CASES: dict[str, tuple[str, Shown]] = {
    "reasoning, then the answer": ("<think>a</think>b", [("reasoning", "a"), ("text", "b")]),
    "white space that touches a marker": (
        "  x \n<think>\n a b \n</think>\n\nc d ",
        [("text", "  x"), ("reasoning", "a b"), ("text", "c d ")],
    ),
    "an empty block": ("<think>\n\n</think>\n\nHi", [("text", "Hi")]),
    "an empty block inside the answer": ("a<think></think>b", [("text", "ab")]),
    "a closer without an opener": ("one</think>two", [("text", "onetwo")]),
    "two closers": ("<think>a</think></think>b", [("reasoning", "a"), ("text", "b")]),
    "an opener directly after one": (
        "<think>\n<think>a</think>b",
        [("reasoning", "a"), ("text", "b")],
    ),
    "an opener inside the block": (
        "<think>a <think> b</think>c",
        [("reasoning", "a <think> b"), ("text", "c")],
    ),
    "a second block": (
        "<think>a</think>b<think>c</think>d",
        [("reasoning", "a"), ("text", "b"), ("reasoning", "c"), ("text", "d")],
    ),
    "what looks like a marker": ("a <thin> b </ think>", [("text", "a <thin> b </ think>")]),
    "a marker after what looks like one": ("<<think>a", [("text", "<"), ("reasoning", "a")]),
    "the end inside an opener": ("a \n<thi", [("text", "a \n<thi")]),
    "the end inside a closer": ("<think>a </thi", [("reasoning", "a </thi")]),
    "the end inside a second opener": ("<think> <thi", [("reasoning", "<thi")]),
    "the end after an opener": ("a <think>", [("text", "a")]),
    "the end in white space": ("a \n", [("text", "a \n")]),
    "the end in white space of reasoning": ("<think>a \n", [("reasoning", "a \n")]),
    "nothing but white space": (" \n ", [("text", " \n ")]),
    "no text at all": ("", []),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name: str) -> None:
    text, expected = CASES[name]
    assert reference(text) == expected, "the reference itself"
    assert joined(run(texts(text))[0]) == expected
    assert joined(run(texts(*text))[0]) == expected
    for at in range(len(text) + 1):
        assert joined(run(texts(text[:at], text[at:]))[0]) == expected, text[:at]


PREFILLED: dict[str, Shown] = {
    "\na </think>\nb": [("reasoning", "a"), ("text", "b")],
    "<think>a</think>b": [("reasoning", "a"), ("text", "b")],
    " \n<think>\n<think>a": [("reasoning", "a")],
    "</think>b": [("text", "b")],
    "a <think> b</think>": [("reasoning", "a <think> b")],
    "a": [("reasoning", "a")],
}


@pytest.mark.parametrize("text", PREFILLED)
def test_a_block_that_the_prompt_opened(text: str) -> None:
    assert reference(text, prefilled=True) == PREFILLED[text], "the reference itself"
    for at in range(len(text) + 1):
        steps = texts(text[:at], text[at:])
        assert joined(run(steps, THINK_PREFILLED)[0]) == PREFILLED[text]


FAMILIES = {
    "think": "<think>Add them.</think>Seven.",
    "think_prefilled": "Add them.</think>Seven.",
    "mistral_think": "[THINK]Add them.[/THINK]Seven.",
    "kimi_vl": "◁think▷Add them.◁/think▷Seven.",
    "gemma4_thought": "<|channel>thought\nAdd them.<channel|>Seven.",
    "cohere_thinking": "<|START_THINKING|>Add them.<|END_THINKING|><|START_RESPONSE|>Seven."
    "<|END_RESPONSE|>",
    "granite_thinking": "Here is my thought process: Add them. Here is my response: Seven.",
    "harmony": "<|channel|>analysis<|message|>Add them.<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Seven.<|return|>",
}


@pytest.mark.parametrize("family", sorted(REASONING.keys() - {"plain"}))
def test_families(family: str) -> None:
    text = FAMILIES[family]
    expected = [("reasoning", "Add them."), ("text", "Seven.")]
    for steps in (texts(text), texts(*text)):
        assert joined(run(steps, REASONING[family])[0]) == expected


@pytest.mark.wire("F7")
def test_nothing_is_held_but_what_may_be_markup() -> None:
    segmenter = Segmenter(THINK)

    def feed(text: str) -> list[Any]:
        return segmenter.feed([Piece(text)])

    assert feed("Hi") == [Text("Hi")]
    assert feed(" there \n") == [Text(" there")]
    assert feed(" <") == []
    assert feed("b") == [Text(" \n <b")]
    assert feed("</th") == []
    assert feed("x<think>a") == [Text("</thx"), Reasoning("a")]
    assert feed("b<think>") == [Reasoning("b<think>")]
    assert feed("</think>\n") == []
    assert feed("\n c") == [Text("c")]
    assert segmenter.finish() == []


def test_without_reasoning_the_answer_is_one_text() -> None:
    text = "a <think>b</think> c<think>d</think>"
    for steps in (texts(text), texts(*text)):
        segments, segmenter = run(steps, reasoning=False)
        assert joined(segments) == [("text", "ac")]
    assert segmenter.reasoning_tokens == 2
    assert segmenter.output_tokens == len(text)


# --- stop strings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stop", "expected", "hit"),
    [
        ("<think>a.b</think>c.d", ".", [("reasoning", "a.b"), ("text", "c")], "."),
        ("<think>a</think>b", "</think>", [("reasoning", "a"), ("text", "b")], None),
        ("a x<think>b</think>yc", "xy", [("text", "a x"), ("reasoning", "b"), ("text", "yc")],
         None),
        ("a x<think></think>yc", "xy", [("text", "a ")], "xy"),
        ("a x</think> yc", "xy", [("text", "a ")], "xy"),
        ("a\n\nb", "\n\n", [("text", "a")], "\n\n"),
        ("a\n\n<think>b", "\n\n", [("text", "a"), ("reasoning", "b")], None),
        ("a\n\n", "\n\n", [("text", "a")], "\n\n"),
        ("a<thi", "<t", [("text", "a")], "<t"),
        ("a.<think>b</think>c", ".", [("text", "a")], "."),
        ("<think>a</think>b.<think>c", ".", [("reasoning", "a"), ("text", "b")], "."),
        ("a<think>b</think>c", "<t", [("text", "a"), ("reasoning", "b"), ("text", "c")], None),
    ],
)  # fmt: skip
def test_stop_strings_are_matched_in_the_answer_alone(
    text: str, stop: str, expected: Shown, hit: str | None
) -> None:
    cuts = [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]
    for parts in cuts:
        for steps in (texts(*parts), [[Piece(part) for part in parts]]):
            segments, segmenter = run(steps, stop=[stop])
            assert joined(segments) == expected
            assert segmenter.stop == hit


def test_output_tokens_end_with_the_match_though_it_was_held() -> None:
    segments, segmenter = run(texts("a", "\n", "b", "c"), stop=["\n"])
    assert joined(segments) == [("text", "a")]
    assert segmenter.output_tokens == 2
    segmenter = Segmenter(THINK, stop=["\n"])
    assert segmenter.feed([Piece("a", (1,)), Piece("\n", (2,)), Piece("b", (3,))]) == [Text("a")]
    assert segmenter.feed([Piece("c", (4,))]) == []
    assert segmenter.output_tokens == 2


def test_hidden_reasoning_does_not_part_a_stop_string() -> None:
    """What the client sees is one text."""
    steps = texts("a x", "<think>b</think>", "yc")
    segments, segmenter = run(steps, stop=["xy"], reasoning=False)
    assert (joined(segments), segmenter.stop) == ([("text", "a ")], "xy")


# --- counts and logprobs ------------------------------------------------------------------------


def named(*parts: str) -> list[Piece]:
    """One piece for each token, with its logprob."""
    return [
        Piece(part, (at,), (Logprob(part, -float(at), part.encode()),))
        for at, part in enumerate(parts)
    ]


TOKENS = ("<think>", "\n", "Two", " and", " two", ".\n", "</think>", "\n\n", " Fo", "ur", ".")


def test_tokens_between_the_markers_are_reasoning() -> None:
    for steps in ([[piece] for piece in named(*TOKENS)], [named(*TOKENS)], texts(*TOKENS)):
        segments, segmenter = run(steps)
        assert joined(segments) == [("reasoning", "Two and two."), ("text", "Four.")]
        assert segmenter.reasoning_tokens == 5
        assert segmenter.output_tokens == 11


def test_logprobs_are_those_of_the_visible_answer() -> None:
    for size in range(1, len(TOKENS) + 1):
        pieces = named(*TOKENS)
        steps = [pieces[at : at + size] for at in range(0, len(pieces), size)]
        segments, _ = run(steps)
        shown = [entry for s in segments if isinstance(s, Text) for entry in s.logprobs]
        assert [entry.token for entry in shown] == [" Fo", "ur", "."]


def test_a_token_cut_by_a_marker_keeps_its_logprob_if_any_of_it_is_visible() -> None:
    both = named("a</think>b", "<think>", "c</think>", "d")
    segments, segmenter = run([both])
    shown = [entry.token for s in segments if isinstance(s, Text) for entry in s.logprobs]
    assert joined(segments) == [("text", "ab"), ("reasoning", "c"), ("text", "d")]
    assert shown == ["a</think>b", "d"]
    assert segmenter.reasoning_tokens == 1
    segments, _ = run([named("<think>", "a</think>", "b")])
    assert [entry.token for entry in segments[1].logprobs] == ["b"]


def test_a_token_inside_a_character_is_of_the_channel_of_that_character() -> None:
    first, second = Logprob("", -1, b"\xf0\x9f"), Logprob("", -1, b"\x98\x80")
    face = [Piece("", (1,), (first,)), Piece("😀", (2,), (second,))]
    segments, segmenter = run([*([p] for p in named("<think>")), face, named("</think>", "x")])
    assert [entry.token for entry in segments[-1].logprobs] == ["x"]
    assert segmenter.reasoning_tokens == 2
    segments, segmenter = run([named("<think>a</think>"), *([piece] for piece in face)])
    assert segments[-1].logprobs == (first, second)
    assert segmenter.reasoning_tokens == 0
    _, segmenter = run([named("<think>", "a"), [face[0]]])
    assert segmenter.reasoning_tokens == 2


def test_ids_that_make_no_text_are_of_the_text_after_them() -> None:
    _, segmenter = run([[Piece("<think>", (1,)), Piece("", (2, 3)), Piece("é", (4,))]])
    assert segmenter.reasoning_tokens == 3
    _, segmenter = run([[Piece("<think>a</think>", (1,))], [Piece("", (2, 3))], [Piece("é", (4,))]])
    assert segmenter.reasoning_tokens == 0


def test_ids_without_borders_are_spread_over_the_text() -> None:
    """Four markers and 24 other ids over 12 characters, of which 9 are reasoning."""
    text = "<think>aaa</think>bbb<think>aaaaaa</think>"
    _, segmenter = run([[Piece(text, tuple(range(28)))]])
    assert (segmenter.reasoning_tokens, segmenter.output_tokens) == (18, 28)
    _, segmenter = run([[Piece(text, (1, 2))]])
    assert segmenter.reasoning_tokens == 0


@pytest.mark.parametrize("tokens", [TOKENS, ("<think>", "x", " y", "</think>", "z")])
def test_reasoning_is_counted_without_the_borders_of_tokens(tokens: tuple[str, ...]) -> None:
    """Cut anywhere in two, ids going with the piece in which their token begins."""
    text = "".join(tokens)
    borders = [0, *itertools.accumulate(map(len, tokens))][:-1]
    exact = run(texts(*tokens))[1].reasoning_tokens
    for at in range(len(text) + 1):
        before = sum(border < at for border in borders)
        ids = tuple(range(len(tokens)))
        steps = [[Piece(text[:at], ids[:before])], [Piece(text[at:], ids[before:])]]
        counted = run(steps)[1].reasoning_tokens
        assert abs(counted - exact) <= 1, text[:at]


# --- any cut ------------------------------------------------------------------------------------

MARKUP = st.lists(
    st.sampled_from(["<think>", "</think>", " ", "\n", "a", "b", "<", "</", "think>", "é😀"]),
    max_size=12,
).map("".join)


@pytest.mark.wire("S9")
@given(MARKUP, st.booleans(), st.data())
def test_any_cut_matches_the_reference(text: str, prefilled: bool, data: st.DataObject) -> None:
    spec = THINK_PREFILLED if prefilled else THINK
    expected = reference(text, prefilled=prefilled)
    parts = data.draw(splits(text))
    assert joined(run(texts(*parts), spec)[0]) == expected
    whole, single = run(texts(text), spec), run(texts(*text), spec)
    assert joined(whole[0]) == joined(single[0]) == expected


@given(MARKUP, st.lists(st.text("ab \n<", min_size=1, max_size=3), max_size=2), st.data())
def test_any_grouping_of_tokens_gives_the_same(
    text: str, stop: list[str], data: st.DataObject
) -> None:
    """Segments, logprobs, counts and the stop string, with tokens cut anywhere."""
    tokens = named(*(part for part in data.draw(splits(text)) if part))
    expected, one = run([[piece] for piece in tokens], stop=stop)

    def told(segments: list[Any]) -> list[Any]:
        return [entry for s in segments if isinstance(s, Text) for entry in s.logprobs]

    cuts = data.draw(st.sets(st.integers(0, len(tokens)), max_size=4))
    borders = [0, *sorted(cuts), len(tokens)]
    for steps in ([tokens], [tokens[a:b] for a, b in itertools.pairwise(borders)]):
        segments, segmenter = run(steps, stop=stop)
        assert joined(segments) == joined(expected)
        assert told(segments) == told(expected)
        assert segmenter.stop == one.stop
        assert segmenter.output_tokens == one.output_tokens
        if one.stop is None:
            assert segmenter.reasoning_tokens == one.reasoning_tokens


@given(MARKUP, st.data())
def test_pieces_read_at_a_glance_are_what_the_careful_way_gives(
    text: str, data: st.DataObject
) -> None:
    """A stop string that never comes keeps every piece from being read at a glance."""
    parts = data.draw(splits(text))
    quick, one = run(texts(*parts))
    careful, other = run(texts(*parts), stop=["\x00"])
    assert joined(quick) == joined(careful)
    assert one.output_tokens == other.output_tokens
    assert one.reasoning_tokens == other.reasoning_tokens


@given(MARKUP, st.booleans(), st.data())
def test_regions_tile_the_text(text: str, prefilled: bool, data: st.DataObject) -> None:
    """None is empty, and none is missing; only the space that touches a marker is not shown."""
    scanner = Scanner(THINK_PREFILLED if prefilled else THINK)
    regions = [region for part in data.draw(splits(text)) for region in scanner.feed(part)]
    regions += scanner.flush()
    borders = [0, *(region.end for region in regions)]
    assert [region.start for region in regions] == borders[:-1]
    assert borders[-1] == len(text)
    for region in regions:
        covered = text[region.start : region.end]
        assert covered
        if region.channel is None:
            assert covered in scanner.mode.markers or covered in ("<think>", "</think>")
            assert region.text == ""
        else:
            assert region.text == covered or (region.text == "" and covered.isspace())


# --- specs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["", " a", "a\n"])
def test_a_marker_is_text_that_begins_and_ends_visibly(marker: str) -> None:
    with pytest.raises(ValueError, match="begins or ends in space"):
        Mode(Text, {marker: "answer"})


def test_specs_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="the marker 'b' is inside the marker 'abc'"):
        Mode(Text, {"abc": "answer", "b": "answer"})
    with pytest.raises(ValueError, match="channel"):
        Mode(str)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="no such mode: other, start"):
        Spec({"answer": Mode(Text, {"a": "other"})}, "start")
    with pytest.raises(ValueError, match="no such mode: other"):
        Spec({"answer": Mode(Text, then="other")}, "answer")
    with pytest.raises(ValueError, match="never leads"):
        Spec({"a": Mode(Text, then="b"), "b": Mode(Reasoning, then="a")}, "a")


def test_what_is_derived_is_no_part_of_a_mode() -> None:
    one = Mode(Text, {"a": "answer", "b": "answer"})
    assert one == Mode(Text, {"b": "answer", "a": "answer"})
    assert one != Mode(Reasoning, {"a": "answer", "b": "answer"})
    assert repr(one).endswith("markers={'a': 'answer', 'b': 'answer'}, then=None, phase=None)")
    with pytest.raises(TypeError):
        Mode(Text, pattern=None)


def test_a_spec_of_ones_own() -> None:
    spec = Spec({"answer": Mode(Text, {"<x>": "answer"})}, "answer")
    assert joined(run(texts(" a <x> b"), spec)[0]) == [("text", " ab")]
    spec = reasoning_between("((", "))")
    assert joined(run(texts(*"((a)) b"), spec)[0]) == [("reasoning", "a"), ("text", "b")]
    assert joined(run(texts("<think>a"), PLAIN)[0]) == [("text", "<think>a")]
