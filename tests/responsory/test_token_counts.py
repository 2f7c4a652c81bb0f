"""Which tokens count as reasoning, and whose logprobs are shown, where pieces hold many tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from responsory.commands import Reasoning, Text
from responsory.segments import Piece, Segmenter
from responsory.segments.formats import THINK
from responsory.segments.markup import Scanner
from responsory.segments.tokens import TokenCount
from responsory.values import Logprob


def run(steps: Sequence[Sequence[Piece]], **options: Any) -> tuple[list[Any], Segmenter]:
    segmenter = Segmenter(THINK, **options)
    return [segment for step in steps for segment in segmenter.feed(step)] + segmenter.finish(), (
        segmenter
    )


def entries_of(*tokens: str) -> tuple[Logprob, ...]:
    return tuple(Logprob(token, -1.0, token.encode()) for token in tokens)


def test_tokens_of_one_piece_are_shown_by_where_they_begin() -> None:
    """Not with the text before them, and not with the text after a block."""
    entries = entries_of("a", "<think>", "b", "</think>", "c")
    whole = Piece("a<think>b</think>c", (1, 2, 3, 4, 5), entries)
    segments, segmenter = run([[whole]])
    assert segments == [Text("a", entries[:1]), Reasoning("b"), Text("c", entries[4:])]
    assert segmenter.reasoning_tokens == 1
    # Two hidden tokens, and one that the second block cuts.
    entries = entries_of("<think>", "b", "</think>c", "<think>")
    segments, _ = run([[Piece("<think>b</think>c<think>", (1, 2, 3, 4), entries)]])
    assert segments == [Reasoning("b"), Text("c", entries[2:3])]


def test_a_token_of_hidden_text_alone_is_not_shown_with_the_text_before() -> None:
    """The stop string is the visible part of the second token, and text before it was held."""
    first, second = entries_of("x", "</think>y")
    segments, segmenter = run([[Piece("x</think>y", (1, 2), (first, second))]], stop=["xz", "y"])
    assert segments == [Text("x", (first,))]
    assert segmenter.stop == "y"
    first, second = entries_of("x", "</think>b")
    segments, _ = run([[Piece("x</think>b", (1, 2), (first, second))]], stop=["xz", "y"])
    assert segments == [Text("xb", (first, second))]


def test_reasoning_is_counted_as_soon_as_it_is_certain() -> None:
    segmenter = Segmenter(THINK)
    segmenter.feed([Piece("<think>", (1,)), Piece("a", (2,)), Piece("b ", (3,)), Piece(" <", (4,))])
    assert segmenter.reasoning_tokens == 1
    segmenter.feed([Piece("c", (5,))])
    assert segmenter.reasoning_tokens == 4
    segmenter.feed([Piece("", (6,)), Piece(" ", (7,)), Piece("", (8,))])
    assert segmenter.reasoning_tokens == 4
    assert segmenter.output_tokens == 8
    segmenter.feed([Piece("d <", (9, 10, 11), entries_of("d", " ", "<"))])
    assert segmenter.reasoning_tokens == 8
    segmenter.feed([Piece("", (12,))])
    assert segmenter.reasoning_tokens == 8
    segmenter.finish()
    assert segmenter.reasoning_tokens == 11
    segmenter.finish()
    assert segmenter.reasoning_tokens == 11


def test_what_is_counted_is_forgotten() -> None:
    """Pieces without ids too: nothing grows with the text."""
    count, scanner, text = TokenCount(), Scanner(THINK), "a b <think> c </think>\n"
    for at in range(10):
        count.add(at * len(text), (at + 1) * len(text), at % 2)
        for region in scanner.feed(text):
            count.settle(region)
        assert len(count._regions) <= 2


@pytest.mark.parametrize("ids", [1, 2, 3, 8])
def test_after_a_stop_string_there_is_no_reasoning(ids: int) -> None:
    piece = Piece("a.<think>bcd", tuple(range(ids)))
    for steps in ([[piece]], [[piece], [Piece("e", (1,))]], [[piece, Piece("e", (1,))]]):
        segments, segmenter = run(steps, stop=["."])
        assert segments == [Text("a")]
        assert (segmenter.output_tokens, segmenter.reasoning_tokens) == (ids, 0)


SIZES = list(itertools.product(range(5), range(1, 5)))


@pytest.mark.parametrize(("before", "within"), SIZES)
def test_ids_without_borders_are_spread_evenly_over_the_text(before: int, within: int) -> None:
    """A marker is one id; a character is reasoning, and so is an id whose middle lies in it."""
    text, total = "a" * before + "<think>" + "b" * within, before + within
    for ids in range(2, 12):
        rest = ids - 1
        middles = [(2 * k + 1) * total / (2 * rest) for k in range(rest)]
        _, segmenter = run([[Piece(text, tuple(range(ids)))]])
        assert segmenter.reasoning_tokens == sum(middle >= before for middle in middles), ids
        assert segmenter.output_tokens == ids


@pytest.mark.parametrize(
    ("pieces", "reasoning"),
    [
        ([("<think>ab</think>cd", 6)], 2),
        ([("<think>a</think><think>", 2)], 0),  # less ids than markers
        ([("<think>", 3)], 0),
        ([("<thi", 2), ("nk>abcd", 2)], 2),  # a marker is of the piece in which it begins
        ([("<think>ab", 3), ("cd</think>", 3)], 4),
        ([("<think>", 1), ("", 2), ("a", 1), ("", 2), ("</think>b", 2)], 3),
        ([("x<think>", 2), ("", 2), ("a</think>", 2), ("b", 2)], 3),
    ],
)
def test_reasoning_of_pieces_of_many_ids(pieces: list[tuple[str, int]], reasoning: int) -> None:
    made = [Piece(text, tuple(range(ids))) for text, ids in pieces]
    for steps in ([made], [[piece] for piece in made]):
        _, segmenter = run(steps)
        assert segmenter.reasoning_tokens == reasoning
        assert segmenter.output_tokens == sum(ids for _, ids in pieces)
