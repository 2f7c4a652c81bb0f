"""The event log: what it takes, its rows, and what is no log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from responsory import EventLog
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections import response_body
from responsory.rows import from_row, to_row
from responsory.testing import a_response
from responsory.values import Logprob, TopLogprob, Usage

ENTRY = Logprob("é", -0.5, b"\xc3\xa9", (TopLogprob("?", -1.0, b"\xff"),))

ROWS: list[tuple[ev.Event, list[Any]]] = [
    (ev.Created(0, "r1", 5, False, {"model": "m"}), ["created", 0, "r1", 5, False, {"model": "m"}]),
    (ev.Queued(1), ["queued", 1]),
    (ev.InProgress(1), ["in_progress", 1]),
    (ev.ItemAdded(2, 0, "message"), ["item_added", 2, 0, "message"]),
    (ev.ItemAdded(2, 0, "message", "commentary"), ["item_added", 2, 0, "message", "commentary"]),
    (
        ev.ItemAdded(2, 0, "function_call", None, "f"),
        ["item_added", 2, 0, "function_call", None, "f"],
    ),
    (ev.PartAdded(3, 0, 0, "output_text"), ["part_added", 3, 0, 0, "output_text"]),
    (ev.TextDelta(4, 0, 0, "Hi"), ["text_delta", 4, 0, 0, "Hi"]),
    (
        ev.TextDelta(4, 0, 0, "é", (ENTRY,)),
        ["text_delta", 4, 0, 0, "é", [["é", -0.5, None, [["?", -1.0, [255]]]]]],
    ),
    (ev.TextDone(5, 0, 0, "Hi"), ["text_done", 5, 0, 0, "Hi"]),
    (ev.RefusalDelta(4, 0, 0, "no"), ["refusal_delta", 4, 0, 0, "no"]),
    (ev.RefusalDone(4, 0, 0, "no"), ["refusal_done", 4, 0, 0, "no"]),
    (ev.ReasoningDelta(4, 0, 0, "so"), ["reasoning_delta", 4, 0, 0, "so"]),
    (ev.ReasoningDone(4, 0, 0, "so"), ["reasoning_done", 4, 0, 0, "so"]),
    (ev.PartDone(6, 0, 0), ["part_done", 6, 0, 0]),
    (ev.InputDelta(3, 0, "{}"), ["input_delta", 3, 0, "{}"]),
    (ev.InputDone(4, 0, "{}"), ["input_done", 4, 0, "{}"]),
    (ev.ItemDone(7, 0, "completed"), ["item_done", 7, 0, "completed"]),
    (ev.Completed(8, Usage(1, 2, 3, 4, 5), 6), ["completed", 8, [1, 2, 3, 4, 5], 6]),
    (
        ev.Incomplete(8, Usage(1, 2), "max_output_tokens"),
        ["incomplete", 8, [1, 2, 0, 0, 0], "max_output_tokens"],
    ),
    (ev.Errored(8, "c", "m"), ["errored", 8, "c", "m"]),
    (ev.Failed(9, Usage(1, 2), "c", "m"), ["failed", 9, [1, 2, 0, 0, 0], "c", "m"]),
    (ev.Cancelled(8, Usage(1, 2)), ["cancelled", 8, [1, 2, 0, 0, 0]]),
]


@pytest.mark.parametrize(("event", "row"), ROWS, ids=lambda value: type(value).__name__)
def test_row(event: ev.Event, row: list[Any]) -> None:
    assert to_row(event) == row
    assert from_row(json.loads(json.dumps(row))) == event


def test_every_kind_has_a_row() -> None:
    assert {type(event) for event, _ in ROWS} == set(ev.EVENTS)
    assert len({event.kind for event in ev.EVENTS}) == len(ev.EVENTS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["exploded", 0], "unknown kind of event: 'exploded'"),
        ([7, 0], "unknown kind of event: 7"),
        ([], "not a row"),
        ("queued", "not a row"),
        ({"kind": "queued"}, "not a row"),
        (["queued"], "1 to 1 values, not 0"),
        (["queued", 1, 2], "1 to 1 values, not 2"),
        (["queued", "1"], "seq cannot be '1'"),
        (["queued", True], "seq cannot be True"),
        (["created", 0, "r1", 5, 1, {}], "background cannot be 1"),
        (["created", 0, "r1", 5, False, []], r"echo cannot be \[\]"),
        (["item_added", 2, 0, "picture"], "type cannot be 'picture'"),
        (["item_done", 2, 0, "done"], "status cannot be 'done'"),
        (["cancelled", 2, [1, 2]], "usage cannot be"),
        (["cancelled", 2, None], "a bad `cancelled` row"),
        (["text_delta", 2, 0, 0, "a", [["a"]]], "a bad `text_delta` row"),
    ],
)
def test_bad_rows(row: Any, message: str) -> None:
    with pytest.raises(LogError, match=message):
        from_row(row)


def test_a_log_grows_densely_and_ends_once() -> None:
    log = EventLog()
    made = a_response().text("a").finish().log
    with pytest.raises(LogError, match="seq 1 where 0 is due"):
        log.extend(made[1:])
    log.extend(made[:4])
    unfinished = log.terminal
    with pytest.raises(LogError, match="seq 5 where 4 is due"):
        log.extend(made[5:])
    log.extend(made[4:])
    assert (unfinished, log.terminal) == (False, True)
    assert (len(log), log[0], list(log)) == (len(made), made[0], made[:])
    with pytest.raises(LogError, match="after the terminal event"):
        log.extend([ev.Queued(len(log))])
    assert log == made
    assert log != made[:]
    assert repr(log) == f"<EventLog of {len(made)} events, ended>"


def test_rows_of_a_log() -> None:
    log = a_response().text("a", "b").finish().log
    header, *rows = log.rows()
    assert header == {"format": 1, "machine": 1, "compacted": False}
    assert len(rows) == len(log)
    assert EventLog.from_rows(log.rows()) == log
    with pytest.raises(LogError, match="where 1 is due"):
        EventLog.from_rows([header, rows[0], rows[2]])


def test_a_compacted_log_says_so() -> None:
    log = a_response().text("a", "b").finish().log
    short = log.compact()
    assert short.compacted
    assert short.terminal
    assert len(short) == len(log) - 2
    header, *rows = short.rows()
    assert header == {"format": 1, "machine": 1, "compacted": True}
    again = EventLog.from_rows([header, *rows])
    assert again == short
    assert again.terminal
    assert again.compact() == again
    assert response_body(again) == response_body(log)
    for bad in ([*rows, rows[-1]], [rows[1], rows[0]]):
        with pytest.raises(LogError, match="out of order"):
            EventLog.from_rows([header, *bad])
    with pytest.raises(LogError, match="seq 4 is a delta in a compacted log"):
        EventLog.from_rows([header, *list(log.rows())[1:]])
    for end in (0, 3, len(rows) - 1):
        with pytest.raises(LogError, match="a compacted log that has not ended"):
            EventLog.from_rows([header, *rows[:end]])


def test_a_running_log_cannot_be_compacted() -> None:
    with pytest.raises(LogError, match="has not ended"):
        a_response().text("a").log.compact()


@pytest.mark.parametrize(
    "header",
    [
        None,
        [],
        {"format": 1, "machine": 1},
        {"format": 2, "machine": 1, "compacted": False},
        {"format": 1, "machine": 2, "compacted": False},
        {"format": 1, "machine": 1, "compacted": "no"},
    ],
)
def test_bad_headers(header: Any) -> None:
    with pytest.raises(LogError, match=r"header of a log|another version"):
        EventLog.from_rows([header, ["queued", 0]])
    with pytest.raises(LogError, match="header of a log"):
        EventLog.from_rows([])


def test_an_empty_log_has_no_body() -> None:
    with pytest.raises(LogError, match="empty log"):
        response_body(EventLog())
