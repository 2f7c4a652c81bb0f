"""The event log: what it takes, its rows, and what is no log."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from responsory import EventLog
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections import response_body
from responsory.testing import a_response


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
    for late in ([ev.Queued(len(log))], [ev.Queued(-1)], made[:2], [*made[-1:]]):
        with pytest.raises(LogError, match="after the terminal event"):
            log.extend(late)
    log.extend([])
    assert log == made
    assert log != made[:]
    assert repr(log) == f"<EventLog of {len(made)} events, ended>"


def test_a_refused_group_is_not_kept_in_part() -> None:
    made = a_response().text("a").finish().log
    log = EventLog(made[:2])
    for group in ([made[2], made[2]], [made[2], made[4]], [*made[2:], ev.Queued(len(made))]):
        with pytest.raises(LogError):
            log.extend(group)
        assert (log[:], log.terminal) == (made[:2], False)
    with pytest.raises(TypeError, match="len"):
        log.extend(iter(made[2:]))  # type: ignore[arg-type]  # it would be gone after a refusal
    log.extend(made[2:])
    assert log == made


def test_memory_of_a_finished_log() -> None:
    """4,096 deltas of five characters take under 1.2 MB, their text included."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        log = a_response().text(*(f"{at:05x}" for at in range(4096))).finish().log
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(log) > 4096
    assert after - before < 1_200_000


def test_rows_of_a_log() -> None:
    log = a_response().text("a", "b").finish().log
    header, *rows = log.rows()
    assert header == {"format": 1, "machine": 1, "compacted": False}
    assert len(rows) == len(log)
    assert EventLog.from_rows(log.rows()) == log
    with pytest.raises(LogError, match=r"^row 3: ItemAdded with seq 2 where 1 is due"):
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
    with pytest.raises(LogError, match=r"^row 10: Completed with seq \d+ after the terminal event"):
        EventLog.from_rows([header, *rows, rows[-1]])
    with pytest.raises(LogError, match=r"^row 3: Created with seq 0 where 1 is due"):
        EventLog.from_rows([header, rows[0], rows[0]])
    with pytest.raises(LogError, match=r"^row 2: InProgress with seq 1 where 0 is due"):
        EventLog.from_rows([header, rows[1], rows[0]])
    with pytest.raises(
        LogError, match=r"^row 6: TextDelta with seq 4 is a delta in a compacted log"
    ):
        EventLog.from_rows([header, *list(log.rows())[1:]])
    for end in (0, 3, len(rows) - 1):
        with pytest.raises(LogError, match="a compacted log that has not ended") as caught:
            EventLog.from_rows([header, *rows[:end]])
        assert caught.value.row == end + 2


def test_a_log_without_deltas_is_not_its_compaction() -> None:
    log = a_response().finish().log
    assert log.compact()[:] == log[:]
    assert log.compact() != log
    assert log.compact() == log.compact()
    assert EventLog.from_rows(log.compact().rows()) == log.compact()


def test_what_could_not_be_read_is_not_written() -> None:
    """No machine gives half a surrogate pair, and no log keeps one that was made by hand."""
    log = a_response().text("a").log
    log.extend([ev.TextDelta(len(log), 0, 0, "half \ud800")])
    for write in (log.rows, log.lines):
        with pytest.raises(LogError) as caught:
            list(write())
        assert str(caught.value) == (
            "row 7: a bad `text_delta` row: text holds half a surrogate pair: 'half \\ud800'"
        )
        assert caught.value.row == 7


def test_a_running_log_cannot_be_compacted() -> None:
    with pytest.raises(LogError, match="has not ended"):
        a_response().text("a").log.compact()


@pytest.mark.parametrize(
    "header",
    [
        None,
        [],
        "header",
        {},
        {"format": 1, "machine": 1},
        {"format": 1, "compacted": False},
        {"format": 1, "machine": 1, "compacted": False, "more": 1},
        {"format": 1, "machine": 1, "compacted": "no"},
        {"format": 1, "machine": 1, "compacted": 0},
        ["queued", 0],
    ],
)
def test_bad_headers(header: Any) -> None:
    with pytest.raises(LogError, match=r"^row 1: not the header of a log: ") as caught:
        EventLog.from_rows([header, ["queued", 0]])
    assert caught.value.row == 1


def test_no_header() -> None:
    for read in (EventLog.from_rows, EventLog.from_lines):
        with pytest.raises(LogError, match=r"^row 1: no header of a log"):
            read([])
    empty = EventLog.from_rows([{"format": 1, "machine": 1, "compacted": False}])
    assert empty == EventLog()
    with pytest.raises(LogError, match=r"^row 2: a compacted log that has not ended"):
        EventLog.from_rows([{"format": 1, "machine": 1, "compacted": True}])


def test_an_empty_log_has_no_body() -> None:
    with pytest.raises(LogError, match="begin with Created"):
        response_body(EventLog())
