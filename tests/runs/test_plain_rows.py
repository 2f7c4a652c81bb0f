"""Rows of one token that say nothing else have a way of their own; what comes of it is the same."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import Finish, Gauges
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.choice import Choice
from antiphon.runs.plan import EchoedPrompt
from responsory.commands import Accept
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream, response_body
from responsory.segments import Segmenter, family

WORDS = (b"a", b" b", b"c ", b"<", b"<think>", b"</think>", b"<tool_call>", b'{"name": "f", ',
         b'"arguments": {"x": 1', b"}}", b"</tool_call>", b"END", b"E", b"\n", "é".encode(),
         b"\xc3", b"\xa9", b"\xf0\x9f", b"\x98\x80", b"x\xe2", b"\xff", b"\xed\xa0", b"",
         b"<|end|>")  # fmt: skip
HIDDEN = frozenset({WORDS.index(b"<|end|>")})
VOCABULARY = Detokenizer(WORDS, HIDDEN)
"""Shared by every choice here, as it is by those of one model."""
BEYOND = len(WORDS)

TOKENS = st.lists(st.integers(0, BEYOND), max_size=24)
ASKED = st.fixed_dictionaries(
    {
        "family": st.sampled_from(["plain", "think", "think+hermes"]),
        "stop": st.sampled_from([(), (), (), ("END",)]),
        "tokens": st.sampled_from([False, False, True]),
        "reasoning": st.booleans(),
        "echo": st.booleans(),
        "logprobs": st.sampled_from([False, False, True]),
        "keep_deltas": st.booleans(),
    }
)


def choice_of(asked: dict[str, Any], table: Detokenizer = VOCABULARY) -> Choice:
    choice = Choice(
        key=1,
        index=0,
        prompt=array("I", [1, 2]),
        detokenizer=table.fresh(),
        segmenter=Segmenter(
            family(asked["family"]),
            stop=asked["stop"],
            tokens=asked["tokens"],
            reasoning=asked["reasoning"],
        ),
        logprobs=asked["logprobs"],
        stop_ids=frozenset(),
        tell_tokens=asked["tokens"],
        echoed=EchoedPrompt(text="so far") if asked["echo"] else None,
        keep_deltas=asked["keep_deltas"],
        echo_logprobs=asked["echo"],
    )
    choice.accept(Accept("r1", 7, echo={"model": "m"}))
    return choice


def play(choice: Choice, tokens: Sequence[int], *, plain: bool) -> list[list[bytes]]:
    """The frames of each step, in the three streams, of one row for each token and of an end."""
    streams = ChatStream(), CompletionsStream(), ResponsesStream()
    steps = []

    def drain() -> None:
        events = choice.drain()
        steps.append([frame for stream in streams for frame in stream.feed(0, events)])

    drain()
    for token in tokens:
        if choice.ended:
            break
        if not (plain and choice.plain(token)):
            builder = FrameBuilder(0)
            builder.row(1, [token], logprobs=[-1.0])
            choice.advance(builder.build(0, Gauges()), 0, 0, 9)
        drain()
    if not choice.ended:
        builder = FrameBuilder(0)
        builder.row(1, finish=Finish.STOP)
        choice.advance(builder.build(0, Gauges()), 0, 0, 9)
        drain()
    return steps


@given(ASKED, TOKENS)
def test_a_plain_row_gives_what_any_row_gives(asked: dict[str, Any], tokens: list[int]) -> None:
    quick, careful = choice_of(asked), choice_of(asked)
    assert play(quick, tokens, plain=True) == play(careful, tokens, plain=False)
    assert quick.log == careful.log
    assert quick.usage() == careful.usage()
    assert quick.ended
    assert quick.log.compacted is not asked["keep_deltas"]


PLAIN: dict[str, Any] = {
    "family": "plain", "stop": (), "tokens": False, "reasoning": True, "echo": False,
    "logprobs": False, "keep_deltas": True,
}  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"family": "think"}, {"keep_deltas": False}])
def test_a_word_that_was_met_is_plain(more: dict[str, Any]) -> None:
    table = Detokenizer(WORDS, HIDDEN)
    first = choice_of({**PLAIN, **more}, table)
    assert not first.plain(0)  # nobody has met it
    play(first, [0, 1], plain=False)
    second = choice_of({**PLAIN, **more}, table)
    assert second.plain(0)
    assert second.plain(1)
    assert [type(event).__name__ for event in second.drain()][-2:] == ["TextDelta", "TextDelta"]
    assert response_body(second.log)["status"] == "in_progress"


@pytest.mark.parametrize(
    ("more", "token"),
    [
        ({}, WORDS.index(b"\xc3")),
        ({}, WORDS.index(b"")),
        ({}, WORDS.index(b"<|end|>")),
        ({}, BEYOND),
        ({"logprobs": True}, 0),
        ({"echo": True}, 0),
        ({"tokens": True}, 0),
        ({"stop": ("END",)}, 0),
        ({"family": "think"}, WORDS.index(b"c ")),
        ({"family": "think"}, WORDS.index(b"<")),
    ],
)
def test_a_row_that_takes_more_than_a_look_is_not_taken(more: dict[str, Any], token: int) -> None:
    play(choice_of(PLAIN), [0, token], plain=False)  # it was met
    choice = choice_of({**PLAIN, **more})
    choice.drain()
    used = choice.usage()
    assert not choice.plain(token)
    assert (choice.drain(), choice.usage()) == ([], used)


def test_no_word_is_plain_inside_a_character() -> None:
    first, second = WORDS.index(b"\xc3"), WORDS.index(b"\xa9")
    play(choice_of(PLAIN), [0], plain=False)
    choice = choice_of(PLAIN)
    for token, plain in ((0, True), (first, False), (0, False), (first, False), (second, False)):
        assert choice.plain(token) is plain
        if not plain:
            builder = FrameBuilder(0)
            builder.row(1, [token])
            choice.advance(builder.build(0, Gauges()), 0, 0, 9)
    assert choice.plain(0)
    (_, _, *deltas) = [event for event in choice.drain() if event.kind != "item_added"]
    assert [getattr(event, "text", None) for event in deltas][1:] == ["a", "\ufffda", "é", "a"]
