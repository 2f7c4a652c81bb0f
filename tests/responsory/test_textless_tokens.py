"""Tokens without text of their own keep their logprobs: every token that is told has its entry."""

from __future__ import annotations

import codecs
import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallInput, CallOpened, Reasoning, Text
from responsory.segments import PLAIN, Piece, Segmenter, Spec, family
from responsory.segments.formats import THINK
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.segments.shown import Segment

HIDDEN = b"<|x|>"
WORDS = (b"a", b"b ", b" ", b"<", b"ST", b"OP", b"\xff", "é".encode(), *"😀".encode())
PARTS = [word if isinstance(word, bytes) else bytes([word]) for word in WORDS] + [HIDDEN, b""]
MARKS = [b"<think>", b"</think>", b"<tool_call>", b"</tool_call>",
         b'{"name": "f", "arguments": {}}']  # fmt: skip


def pieces_of(parts: Sequence[bytes]) -> tuple[list[Piece], Piece]:
    """One piece a token, ids 0, 1, 2…, and what the end brings; a hidden token breaks no
    character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = []
    for at, data in enumerate(parts):
        entry = Logprob(data.decode(errors="replace"), -float(at), data)
        text = "" if data == HIDDEN else decoder.decode(data)
        pieces.append(Piece(text, (at,), (entry,)))
    return pieces, Piece(decoder.decode(b"", True))


def run(
    pieces: Sequence[Piece], tail: Piece, borders: Sequence[int], spec: Spec = PLAIN, stop: str = ""
) -> tuple[list[Segment], Segmenter]:
    """The segments of these tokens in steps that end at ``borders``."""
    segmenter = Segmenter(spec, stop=stop or (), tokens=True)
    segments: list[Segment] = []
    for start, end in itertools.pairwise([0, *borders, len(pieces)]):
        segments += segmenter.feed(pieces[start:end])
    if tail.text:
        segments += segmenter.feed([tail])
    return segments + segmenter.finish(), segmenter


def entries_of(segments: Sequence[Segment]) -> list[int]:
    """The ids of the tokens whose logprobs are shown."""
    return [
        int(-(entry.logprob or 0))
        for segment in segments
        if isinstance(segment, Text)
        for entry in segment.logprobs
    ]


def ids_of(segments: Sequence[Segment]) -> list[int]:
    return [
        token
        for segment in segments
        if isinstance(segment, Text | Reasoning | CallInput) and segment.tokens is not None
        for token in segment.tokens.ids
    ]


def cuts(data: st.DataObject, length: int) -> list[int]:
    return sorted(data.draw(st.sets(st.integers(0, length), max_size=6)))


@given(st.lists(st.sampled_from(PARTS), max_size=14), st.sampled_from(["", "STOP", "a", "aST"]),
       st.data())  # fmt: skip
def test_each_token_that_is_told_has_its_logprob(
    parts: list[bytes], stop: str, data: st.DataObject
) -> None:
    """Whatever the tokens and the steps; a stop string cuts both at one place."""
    pieces, tail = pieces_of(parts)
    segments, segmenter = run(pieces, tail, cuts(data, len(parts)), stop=stop)
    assert entries_of(segments) == ids_of(segments)
    if not segmenter.ended:
        assert ids_of(segments) == [*range(len(parts))]
        assert segmenter.rest == ()
    for segment in segments:
        assert isinstance(segment, Text)
        assert segment.text or segment is segments[-1], "only the flush brings no text"


@given(st.lists(st.sampled_from([*PARTS, *MARKS]), max_size=14), st.sampled_from(["", "STOP"]),
       st.data())  # fmt: skip
def test_any_steps_show_the_same_beside_markers(
    parts: list[bytes], stop: str, data: st.DataObject
) -> None:
    spec = family("think+hermes")
    pieces, tail = pieces_of(parts)
    one, single = run(pieces, tail, range(1, len(parts)), spec, stop)
    other, segmenter = run(pieces, tail, cuts(data, len(parts)), spec, stop)
    assert entries_of(other) == entries_of(one)
    assert ids_of(other) == ids_of(one)
    assert segmenter.rest == single.rest
    assert set(entries_of(one)) <= set(ids_of(one))


@given(st.lists(st.sampled_from([*PARTS, *MARKS]), max_size=14))
def test_logprobs_open_no_item(parts: list[bytes]) -> None:
    """An answer has the same items whether they were asked for or not."""

    def kinds(pieces: Sequence[Piece], tail: Piece) -> list[type[Segment]]:
        segmenter = Segmenter(family("think+hermes"))
        segments = [each for piece in (*pieces, tail) for each in segmenter.feed([piece])]
        found = [type(each) for each in segments + segmenter.finish()]
        return [kind for kind, _ in itertools.groupby(found)] or [Text]

    pieces, tail = pieces_of(parts)
    without = [Piece(piece.text, piece.ids) for piece in pieces]
    assert kinds(pieces, tail) == kinds(without, tail)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([HIDDEN], [0]),
        ([HIDDEN, b"a"], [0, 1]),
        ([b"a", HIDDEN, b"b"], [0, 1, 2]),
        ([b"a", HIDDEN, HIDDEN], [0, 1, 2]),
        ([b"\xf0\x9f", HIDDEN, b"\x98\x80", b"a"], [0, 1, 2, 3]),
        ([b"\xf0\x9f", HIDDEN], [0, 1]),
        # Of the reasoning, or of a marker.
        ([b"<think>", HIDDEN, b"a", HIDDEN, b"</think>", b"b"], [5]),
        ([b"b", HIDDEN, b"<think>", b"a", b"</think>", b"c"], [0, 5]),
        ([b"<think>", b"a", b"</think>", HIDDEN, b"b", HIDDEN], [3, 4, 5]),
        # After the only text was reasoning there is no answer that it could be of.
        ([b"<think>", b"a", b"</think>", HIDDEN], []),
        ([b"<think>", b"a", HIDDEN], []),
        ([b"<think>", b"</think>", HIDDEN], [2]),
    ],
)
def test_where_a_token_without_text_is_shown(
    parts: list[bytes], shown: list[int], together: bool
) -> None:
    pieces, tail = pieces_of(parts)
    borders = [] if together else range(1, len(parts))
    assert entries_of(run(pieces, tail, borders, THINK)[0]) == shown


def test_a_hidden_token_before_a_stop_string_is_cut_with_it() -> None:
    pieces, tail = pieces_of([b"a", HIDDEN, b"ST", b"OP", HIDDEN])
    for steps in (1, 5):
        borders = [*range(1, steps)]
        segments, segmenter = run(pieces, tail, borders, stop="STOP")
        assert segments == [Text("a", pieces[0].logprobs, tokens=segments[0].tokens)]  # type: ignore[union-attr]  # it is a Text
        assert segmenter.stop == "STOP"


def test_no_message_is_opened_behind_a_call() -> None:
    pieces, tail = pieces_of([*MARKS[2:3], MARKS[4], MARKS[3], HIDDEN])
    segments, segmenter = run(pieces, tail, [], family("hermes"))
    assert [type(each) for each in segments][:1] == [CallOpened]
    assert not any(isinstance(each, Text) for each in segments)
    assert segmenter.rest == (2, 3)
