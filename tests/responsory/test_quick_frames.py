"""A delta that is fed alone has a way of its own through each stream; its frame is no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory import EventLog
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.testing import a_response
from responsory.testing.strategies import logs


def letters(count: int) -> str:
    return "x" * count


CHUNKS = st.fixed_dictionaries(
    {
        "choices": st.sampled_from([1, 2]),
        "logprobs": st.booleans(),
        "include_usage": st.booleans(),
        "obfuscation": st.sampled_from([None, None, letters]),
    }
)


def fed(stream: Any, events: list[ev.Event], *, alone: bool) -> list[bytes]:
    """The frames of events, each fed alone or all in one feed."""
    groups = [[event] for event in events] if alone else [events]
    return [frame for group in groups for frame in stream.feed(0, group)]


FIELDS = st.sampled_from(["reasoning_content", "reasoning", "both"])


@given(logs(), CHUNKS, FIELDS)
def test_chunks_of_chat(
    made: tuple[EventLog, list[int]], asked: dict[str, Any], field: Any
) -> None:
    log, _ = made
    alone, together = (ChatStream(**asked, reasoning_field=field) for _ in range(2))
    assert fed(alone, log[:], alone=True) == fed(together, log[:], alone=False)
    assert fed(alone, log[-3:], alone=True) == fed(together, log[-3:], alone=False)


@given(logs(), CHUNKS)
def test_chunks_of_completions(made: tuple[EventLog, list[int]], asked: dict[str, Any]) -> None:
    log, _ = made
    # The end of a completion rides on the last text of its feed, so it is fed apart.
    alone, together = (CompletionsStream(**asked) for _ in range(2))
    assert fed(alone, log[:-1], alone=True) == fed(together, log[:-1], alone=False)
    assert alone.feed(0, log[-1:]) == together.feed(0, log[-1:])
    assert fed(alone, log[-3:], alone=True) == fed(together, log[-3:], alone=False)


@given(logs(), st.sampled_from([None, letters]))
def test_frames(made: tuple[EventLog, list[int]], obfuscation: Any) -> None:
    log, _ = made
    alone, together = (ResponsesStream(obfuscation=obfuscation) for _ in range(2))
    assert fed(alone, log[:], alone=True) == fed(together, log[:], alone=False)


@pytest.mark.parametrize("kind", [ChatStream, CompletionsStream])
def test_a_delta_where_none_is_due(kind: type[Any]) -> None:
    made = a_response().text("a", "b").fail()
    delta = [event for event in made.log if isinstance(event, ev.TextDelta)][1:]
    stream = kind(choices=2)
    for choice, error in ((2, ValueError), (0, LogError)):
        with pytest.raises(error):
            stream.feed(choice, delta)
    stream.feed(0, made.log[:5])
    (frame,) = stream.feed(0, delta)
    assert b'"b"' in frame
    assert stream.feed(0, [ev.TextDelta(6, 0, 0, "")]) == []
    assert stream.feed(0, made.log[-1:])[-1] == b"data: [DONE]\n\n"
    assert stream.feed(0, delta) == []
    assert stream.feed(1, delta) == []
    with pytest.raises(ValueError, match="has no choice 2"):
        stream.feed(2, delta)
