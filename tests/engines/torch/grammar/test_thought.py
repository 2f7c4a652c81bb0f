"""The form begins behind what a reasoning model thinks, however its markers are cut into tokens."""

from __future__ import annotations

import pytest

from antiphon.engines.torch.grammar.state import Grammar
from antiphon.engines.torch.grammar.thought import Thought
from engines.torch.grammar.writing import EOS, a_grammar, allowed, vocabulary

EVERY = {token for token in range(768) if token != EOS}


def held(opener: str = "") -> Grammar:
    """Two letters, behind a thought."""
    return a_grammar("regex", "[ab]{2}", opener=opener, closer="</think>")


def spell(text: str) -> list[int]:
    """One token for each byte."""
    return [vocabulary().ids[bytes([byte])] for byte in text.encode()]


def in_bytes(text: str, grammar: Grammar) -> bool:
    """Whether the form takes the text, a byte a token, and is finished behind it."""
    for token in spell(text):
        if token not in allowed(grammar) or not grammar.advance(token):
            return False
    return grammar.finished


@pytest.mark.parametrize(
    "text", ["<think>anything: cc</think>ab", "<think></think>ab", "ab", "<think><think></think>ba"]
)
def test_a_thought_may_come_first(text: str) -> None:
    assert in_bytes(text, held("<think>"))


@pytest.mark.parametrize("text", ["<think>a</think>cb", "<thinkab", "x", "<think>ab", "</think>ab"])
def test_the_answer_is_held_to_it_all_the_same(text: str) -> None:
    assert not in_bytes(text, held("<think>"))


@pytest.mark.parametrize("text", ["cc</think>ab", "</</think>ba"])
def test_a_thought_that_the_prompt_has_opened(text: str) -> None:
    assert in_bytes(text, held())
    assert not in_bytes(text, a_grammar("regex", "[ab]{2}"))


def test_a_thought_may_be_anything_but_the_end() -> None:
    grammar = held()
    assert set(allowed(grammar)) == EVERY
    assert not grammar.finished
    assert not grammar.advance(EOS)


def test_an_opener_that_is_begun_is_written_to_its_end() -> None:
    grammar = held("<think>")
    ids = vocabulary().ids
    first = {ids[start] for start in (b"<", b"<t", b"<think>") if start in ids}
    assert first < set(allowed(grammar))
    assert grammar.advance(ids[b"<"])
    left = b"think>"
    assert {vocabulary().spelt(token) for token in allowed(grammar)} == {
        left[:end] for end in range(1, len(left) + 1) if left[:end] in ids
    }


@pytest.mark.parametrize("space", ["", "\n\n", " "])
def test_a_marker_and_white_space_in_one_token(space: str) -> None:
    """White space that touches the marker is not of the answer; what stands behind it is."""
    thought = Thought(b"", b"</think>", {})
    assert thought.take(b"x</thi") is None
    assert thought.take(f"nk>{space}".encode()) is None
    assert thought.over
    thought = Thought(b"", b"</think>", {})
    assert thought.take(f"</think>{space}a".encode()) == b"a"
