"""Token ids: each is told once, in order, with the segment that makes it certain, and cut with the
text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import PLAIN, Piece, Segmenter, Spec, family
from responsory.testing.strategies import splits
from responsory.values import Logprob, Tokens

BOTH = family("think+hermes")
Told = list[tuple[str, str, list[int]]]
"""(kind, text, ids) of each item."""


def pieces_of(*tokens: str) -> list[Piece]:
    """One piece a token; ids are 0, 1, 2…"""
    return [Piece(token, (at,)) for at, token in enumerate(tokens)]


def run(steps: Iterable[Sequence[Piece]], spec: Spec = BOTH, **options: Any) -> tuple[Told, Any]:
    """What each item shows, and the segmenter, after what holds for every segment was checked."""
    segmenter = Segmenter(spec, tokens=True, **options)
    items: Told = []
    count = 0
    for step in [*steps, None]:
        found = segmenter.finish() if step is None else segmenter.feed(step)
        for segment in found:
            if isinstance(segment, CallOpened):
                items.append(("call " + segment.name, "", []))
            elif not isinstance(segment, CallClosed):
                tokens = segment.tokens
                assert tokens is not None
                count += len(tokens.ids)
                assert tokens.output == count <= segmenter.output_tokens
                kind = type(segment).__name__.lower()
                if not isinstance(segment, CallInput) and (not items or items[-1][0] != kind):
                    items.append((kind, "", []))
                name, text, ids = items[-1]
                items[-1] = (name, text + segment.text, [*ids, *tokens.ids])
    return items, segmenter


def ids_of(items: Told, segmenter: Segmenter) -> list[int]:
    return [token for _, _, ids in items for token in ids] + list(segmenter.rest)


def test_nothing_is_told_unless_asked() -> None:
    segmenter = Segmenter(BOTH)
    assert segmenter.feed(pieces_of("<think>", "a", "</think>")) == [Reasoning("a")]
    assert segmenter.feed([Piece("b", (1,))]) == [Text("b")]
    assert segmenter.finish() == []
    assert segmenter.rest == ()


def test_markers_go_with_what_follows_them() -> None:
    segmenter = Segmenter(BOTH, tokens=True)
    assert segmenter.feed([Piece("<think>", (1,))]) == []
    assert segmenter.feed([Piece("a", (2,))]) == [Reasoning("a", Tokens((1, 2), 2))]
    assert segmenter.feed([Piece("</think>", (3,)), Piece("\n", (4,))]) == []
    assert segmenter.feed([Piece("b", (5,))]) == [Text("b", tokens=Tokens((3, 4, 5), 5))]
    assert segmenter.feed([Piece("c d", (6, 7))]) == [Text("c d", tokens=Tokens((6, 7), 7))]
    assert segmenter.feed([Piece("", (8,))]) == []
    assert segmenter.finish() == []
    assert segmenter.rest == (8,)


CALL = ("Hm", ".", " ", "<tool_call>", '{"name":', ' "f"', ', "arguments": ', "{", '"a"', ": 1",
        "}}", "\n", "</tool_call>", "\n", "Ok", "")  # fmt: skip


def test_ids_of_a_call() -> None:
    for steps in ([pieces_of(*CALL)], [[piece] for piece in pieces_of(*CALL)]):
        items, segmenter = run(steps)
        assert items == [
            ("text", "Hm.", [0, 1]),
            ("call f", '{"a": 1}', [2, 3, 4, 5, 6, 7, 8, 9, 10]),
            ("text", "Ok", [11, 12, 13, 14]),
        ]
        assert segmenter.rest == (15,)


def test_after_the_only_call_nothing_is_told() -> None:
    for steps in ([pieces_of(*CALL)], [[piece] for piece in pieces_of(*CALL)]):
        items, segmenter = run(steps, parallel=False)
        assert [item[0] for item in items] == ["text", "call f"]
        assert ids_of(items, segmenter) == list(range(13))
        assert segmenter.rest == (11, 12)
        assert segmenter.output_tokens == 13


def test_what_was_dropped_is_told_at_the_end() -> None:
    segmenter = Segmenter(BOTH, tokens=True)
    segmenter.feed(pieces_of("a", " ", "<tool_call>", '{"na'))
    assert segmenter.finish(cut=True) == []
    assert segmenter.rest == (1, 2, 3)
    segmenter.finish(cut=True)
    assert segmenter.rest == (1, 2, 3)


def test_hidden_reasoning_is_told_with_the_answer() -> None:
    items, segmenter = run([pieces_of("a", "<think>", "b", "</think>", "c")], reasoning=False)
    assert items == [("text", "ac", [0, 1, 2, 3, 4])]
    assert segmenter.rest == ()


@pytest.mark.parametrize(
    ("tokens", "stop", "include", "told", "rest"),
    [
        (["a", "b.c", "d"], ".", False, [("text", "ab", [0, 1])], ()),
        (["a", ".c", "d"], ".", False, [("text", "a", [0])], ()),
        (["a", ".c", "d"], ".", True, [("text", "a.", [0, 1])], ()),
        (["a", ".", "d"], ".", True, [("text", "a.", [0, 1])], ()),
        (["a", "E", "N", "D", "x"], "END", False, [("text", "a", [0])], ()),
        (["a", "E", "N", "x"], "END", False, [("text", "aENx", [0, 1, 2, 3])], ()),
        (["a", "E", "N"], "END", False, [("text", "aEN", [0, 1, 2])], ()),
        # Markers before the match stand before it, those inside it do not.
        (["a", "<think>", "</think>", "E", "ND"], "END", False, [("text", "a", [0])], (1, 2)),
        (["aE", "<think>", "</think>", "ND"], "END", False, [("text", "a", [0])], ()),
        (["aE", "<think>", "</think>", "ND", "b"], "END", True, [("text", "aEND", [0, 1, 2, 3])],
         ()),
        # A reasoning item that is shown ends what could match.
        (["aE", "<think>", "x", "</think>", "ND"], "END", False,
         [("text", "aE", [0]), ("reasoning", "x", [1, 2]), ("text", "ND", [3, 4])], ()),
    ],
)  # fmt: skip
def test_a_stop_string_cuts_ids_where_it_cuts_text(
    tokens: list[str], stop: str, include: bool, told: Told, rest: tuple[int, ...]
) -> None:
    pieces = pieces_of(*tokens)
    for steps in ([pieces], [[piece] for piece in pieces]):
        items, segmenter = run(steps, stop=[stop], include_stop=include)
        assert items == told
        assert segmenter.rest == rest


def test_a_token_inside_a_character_is_of_the_next_one() -> None:
    face = [Piece("", (1,)), Piece("😀", (2,))]
    segmenter = Segmenter(PLAIN, tokens=True)
    assert segmenter.feed([Piece("a", (0,)), face[0]]) == [Text("a", tokens=Tokens((0,), 1))]
    assert segmenter.feed(face[1:]) == [Text("😀", tokens=Tokens((1, 2), 3))]
    segmenter = Segmenter(PLAIN, tokens=True, stop=["😀"])
    segmenter.feed([Piece("a", (0,)), *face])
    segmenter.finish()
    assert segmenter.rest == ()
    assert segmenter.output_tokens == 3


def test_ids_of_one_text_are_parted_where_their_logprobs_spell_it() -> None:
    entries = tuple(Logprob(token, -1.0, token.encode()) for token in ("a", ".", "b"))
    segmenter = Segmenter(PLAIN, tokens=True, stop=["."])
    assert segmenter.feed([Piece("a.b", (1, 2, 3), entries)]) == [
        Text("a", entries[:1], tokens=Tokens((1,), 1))
    ]
    # Without them all are of the first character.
    segmenter = Segmenter(PLAIN, tokens=True, stop=["."])
    assert segmenter.feed([Piece("a.b", (1, 2, 3))]) == [Text("a", tokens=Tokens((1, 2, 3), 3))]


MARKUP = st.lists(
    st.sampled_from(
        ["<think>", "</think>", " ", "\n", "a", "b", "<", "é😀", "", "<tool_call>", '{"name": "f"',
         ', "arguments": {"x": ', "1}", "}", "</tool_call>",
         '<tool_call>{"name":"g","arguments":{"y":2}}</tool_call>']
    ),
    max_size=12,
)  # fmt: skip


@given(MARKUP, st.lists(st.text("ab \n<", min_size=1, max_size=3), max_size=2), st.booleans(),
       st.booleans(), st.data())  # fmt: skip
def test_any_grouping_of_tokens_tells_the_same(
    parts: list[str], stop: list[str], include: bool, parallel: bool, data: st.DataObject
) -> None:
    """Each item tells the same ids, and all ids are told once."""
    tokens = pieces_of(*data.draw(splits("".join(parts)) if data.draw(st.booleans()) else
                                  st.just(parts)))  # fmt: skip
    options: dict[str, Any] = {"stop": stop, "include_stop": include, "parallel": parallel}
    expected, one = run([[piece] for piece in tokens], **options)
    told = ids_of(expected, one)
    assert told == list(range(len(told)))
    assert len(told) <= one.output_tokens
    if not one.ended:
        assert len(told) == len(tokens)
    elif one.stop is None:
        assert len(told) == one.output_tokens
    borders = [0, *sorted(data.draw(st.sets(st.integers(0, len(tokens)), max_size=4))), len(tokens)]
    for steps in ([tokens], [tokens[a:b] for a, b in itertools.pairwise(borders)]):
        items, segmenter = run(steps, **options)
        assert items == expected
        assert segmenter.rest == one.rest
        assert segmenter.output_tokens == one.output_tokens


@given(MARKUP, st.lists(st.text("ab \n<", min_size=1, max_size=3), max_size=2))
def test_an_id_is_told_if_any_of_its_text_stands_before_the_match(
    parts: list[str], stop: list[str]
) -> None:
    """In plain text, where what stands before the match is what is shown."""
    items, segmenter = run([pieces_of(*parts)], PLAIN, stop=stop)
    if segmenter.stop is None:
        return
    shown = sum(len(text) for _, text, _ in items)
    starts = [0, *itertools.accumulate(map(len, parts))]
    assert ids_of(items, segmenter) == [at for at in range(len(parts)) if starts[at] < shown]


@given(MARKUP, st.lists(st.text("ab \n<", min_size=1, max_size=3), max_size=2))
def test_telling_ids_changes_nothing_else(parts: list[str], stop: list[str]) -> None:
    telling, silent = Segmenter(BOTH, stop=stop, tokens=True), Segmenter(BOTH, stop=stop)
    for piece in pieces_of(*parts):
        for one, other in zip(telling.feed([piece]), silent.feed([piece]), strict=True):
            assert type(one) is type(other)
            if isinstance(one, Text | Reasoning | CallInput):
                assert isinstance(other, type(one))
                assert one.text == other.text
    assert telling.output_tokens == silent.output_tokens
    assert telling.reasoning_tokens == silent.reasoning_tokens
