"""The form begins behind what a reasoning model thinks, however its markers are cut into tokens."""

from __future__ import annotations

import pytest

from antiphon.engines.torch.grammar.state import Grammar
from antiphon.engines.torch.grammar.thought import Thought
from engines.torch.grammar.writing import EOS, a_grammar, allowed, vocabulary

EVERY = {token for token in range(768) if token != EOS}


def held(opener: str = "", closer: str = "</think>") -> Grammar:
    """Two letters, behind a thought. No token is ``<muse>``, and one is ``<think>``."""
    return a_grammar("regex", "[ab]{2}", opener=opener, closer=closer)


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
    "text", ["<muse>anything: cc</muse>ab", "<muse></muse>ab", "ab", "<muse><muse></muse>ba"]
)
def test_a_thought_may_come_first(text: str) -> None:
    assert in_bytes(text, held("<muse>", "</muse>"))


@pytest.mark.parametrize("text", ["<muse>a</muse>cb", "<museab", "x", "<muse>ab", "</muse>ab"])
def test_the_answer_is_held_to_it_all_the_same(text: str) -> None:
    assert not in_bytes(text, held("<muse>", "</muse>"))


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
    assert ids[b"<think>"] in allowed(grammar)
    assert ids[b"<"] not in allowed(grammar)  # a marker that is a token is written as one
    grammar = held("<muse>", "</muse>")
    assert ids[b"<"] in allowed(grammar)
    assert grammar.advance(ids[b"<"])
    left = b"muse>"
    assert {vocabulary().spelt(token) for token in allowed(grammar)} == {
        left[:end] for end in range(1, len(left) + 1) if left[:end] in ids
    }


@pytest.mark.parametrize("space", ["", "\n\n", " "])
def test_a_marker_and_white_space_in_one_token(space: str) -> None:
    """White space that touches the marker is not of the answer; what stands behind it is."""
    thought = Thought(b"", b"</think>", {})
    taken = [thought.take(one) for one in (b"x</thi", f"nk>{space}".encode(), b"a")]
    assert taken == [None, None, b"a"]
    assert thought.over
    assert Thought(b"", b"</think>", {}).take(f"</think>{space}a".encode()) == b"a"


def test_a_little_white_space_may_follow_the_marker() -> None:
    """As the model is used to; then the answer comes."""
    grammar = held()
    line = vocabulary().ids[b"\n"]
    for token in [*spell("x</think>"), line, line]:
        assert token in allowed(grammar)
        assert grammar.advance(token)
    assert line not in allowed(grammar)
    for token in spell("ab"):
        assert token in allowed(grammar)
        assert not grammar.finished
        assert grammar.advance(token)
    assert grammar.finished


def test_white_space_that_the_form_asks_for_is_the_answers() -> None:
    grammar = a_grammar("regex", " a", closer="</think>")
    line, answer = (vocabulary().ids[one] for one in (b"\n", b" a"))
    for token in [*spell("x</think>"), line, line, answer]:
        assert token in allowed(grammar)
        assert grammar.advance(token)
    assert grammar.finished


def test_a_budget_of_thought_forces_its_end() -> None:
    grammar = a_grammar("any", opener="<think>", closer="</think>", budget=3, barred=["<think>"])
    ids = vocabulary().ids
    assert set(allowed(grammar)) >= EVERY  # there may be no thought at all
    assert grammar.advance(ids[b"<think>"])
    for _ in range(3):
        assert set(allowed(grammar)) == {*EVERY, EOS} - {ids[b"<think>"]}
        assert grammar.advance(ids[b"a"])
    assert allowed(grammar) == [ids[b"</think>"]]
    assert grammar.advance(ids[b"</think>"])
    # And no other one begins.
    assert set(allowed(grammar)) == {*EVERY, EOS} - {ids[b"<think>"]}
    assert grammar.advance(EOS)
    assert not grammar.error


@pytest.mark.parametrize("budget", [0, 1])
def test_a_closer_of_many_tokens_is_forced_token_by_token(budget: int) -> None:
    grammar = a_grammar("regex", "[ab]", closer="</muse>", budget=budget)
    for _ in range(budget):
        assert grammar.advance(vocabulary().ids[b"<"])
    written = b""
    while len(left := allowed(grammar)) == 1:
        written += vocabulary().spelt(left[0])
        assert grammar.advance(left[0])
    assert written == b"</muse>"
    assert grammar.advance(vocabulary().ids[b"a"])
    assert grammar.finished


def test_a_thought_that_ends_in_time_is_not_touched() -> None:
    grammar = a_grammar("regex", "[ab]", closer="</think>", budget=2)
    assert grammar.advance(vocabulary().ids[b"x"])
    assert grammar.advance(vocabulary().ids[b"</think>"])
    assert grammar.advance(vocabulary().ids[b"b"])
    assert grammar.finished


def test_no_call_begins_inside_a_thought() -> None:
    grammar = a_grammar("regex", "[ab]", closer="</think>", barred=["<tool_call>", "no token"])
    assert EVERY - set(allowed(grammar)) == {vocabulary().ids[b"<tool_call>"]}
