"""Resuming: the same bytes again, from any place, and always an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory import EventLog
from responsory import events as ev
from responsory.errors import CursorExpired
from responsory.projections import ResponsesStream, resume, tail
from responsory.testing import a_response
from responsory.testing.strategies import logs

DONE = [b"data: [DONE]\n\n"]


@pytest.mark.wire("K15")
@given(logs(), st.data())
def test_a_resumed_reader_gets_the_same_bytes(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log, _ = made
    frames = ResponsesStream().feed(0, log[:])
    cursor = data.draw(st.none() | st.integers(0, len(log) - 1))
    seen = 0 if cursor is None else cursor + 1
    # Every event is one frame, but Cancelled has none.
    assert resume(ResponsesStream(), log, cursor) == (frames[seen:] or DONE)
    assert list(tail(log, cursor)) == log[seen:]


@given(logs(), st.data())
def test_a_reader_that_resumes_live_goes_on_from_there(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log, groups = made
    now = sum(groups[: data.draw(st.integers(1, len(groups)))])
    cursor = data.draw(st.none() | st.integers(0, now - 1))
    stream = ResponsesStream()
    frames = resume(stream, EventLog(log[:now]), cursor)
    frames += stream.feed(0, log[now:])
    whole = ResponsesStream().feed(0, log[:])
    assert frames == (whole[0 if cursor is None else cursor + 1 :] or DONE)


@pytest.mark.parametrize(
    ("log", "closing"),
    [
        (a_response().text("a", "b").fail().log, "TextDone PartDone ItemDone Errored Failed"),
        (a_response().refusal("a").fail().log, "RefusalDone PartDone ItemDone Errored Failed"),
        (a_response().reasoning("a").cancel().log, "ReasoningDone PartDone ItemDone Cancelled"),
        (a_response().call("f", "{", closed=False).fail().log, "InputDone ItemDone Errored Failed"),
        (a_response().fail().log, "Errored Failed"),
        (a_response(background=True).fail().log, "Errored Failed"),
        (a_response().text("a").finish().log, "TextDone PartDone ItemDone Completed"),
    ],
)
def test_a_cursor_past_the_end_gets_the_closing_events(log: EventLog, closing: str) -> None:
    """A client saw deltas that were not stored before a crash; recovery then failed the log."""
    cursor = len(log) + 3
    events = tail(log, cursor)
    assert " ".join(type(event).__name__ for event in events) == closing
    frames = ResponsesStream().feed(0, log[:])
    assert resume(ResponsesStream(), log, cursor) == frames[len(log) - len(events) :]


def test_a_cursor_past_the_end_of_a_live_log_waits() -> None:
    assert list(tail(a_response().text("a").log, 99)) == []
    assert list(tail(EventLog(), None)) == []


def test_a_cursor_before_a_gap_has_expired() -> None:
    log = a_response().text("a", "b").finish().log
    short = log.compact()
    for cursor in (None, 0, 3, 4):
        with pytest.raises(CursorExpired, match="were dropped"):
            tail(short, cursor)
    last_delta = max(event.seq for event in log if type(event) in ev.DELTAS)
    for cursor in (last_delta, last_delta + 1, log[-1].seq):
        assert list(tail(short, cursor)) == log[cursor + 1 :]
        frames = ResponsesStream().feed(0, log[:])
        assert resume(ResponsesStream(), short, cursor) == frames[cursor + 1 :]


def test_no_number_is_negative() -> None:
    with pytest.raises(ValueError, match="no sequence number is -2"):
        tail(a_response().log, -2)
