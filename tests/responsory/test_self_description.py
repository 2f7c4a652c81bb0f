"""What a machine and a log say of themselves: equality, repr, and the words of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from responsory import EventLog, Response
from responsory import events as ev
from responsory.commands import Accept
from responsory.errors import LogError
from responsory.rows import Row
from responsory.testing import a_response
from responsory.upcasts import Upcasts, Version
from responsory.values import Usage


def test_a_machine_shows_its_place() -> None:
    machine = Response()
    assert repr(machine) == "<Response in state `new`, next seq 0>"
    machine.receive(Accept("t", 1))
    assert repr(machine) == "<Response in state `idle`, next seq 2>"


def test_a_log_shows_its_length_and_whether_it_has_ended() -> None:
    running = a_response().text("a")
    assert repr(running.log) == "<EventLog of 5 events>"
    assert repr(running.finish().log) == "<EventLog of 9 events, ended>"


def test_logs_are_equal_by_their_events() -> None:
    one = a_response().text("a").finish().log
    assert one == EventLog(one)
    assert one != a_response().text("b").finish().log
    assert one != EventLog(one[:-1])
    assert one.compact() == one.compact()
    # No delta to drop: the same events, and another log all the same.
    empty = a_response().finish().log
    assert empty[:] == empty.compact()[:]
    assert empty != empty.compact()
    assert EventLog.__eq__(one, one[:]) is NotImplemented
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_log_says_what_it_does_not_take() -> None:
    log = a_response().text("a").log
    with pytest.raises(LogError) as gap:
        log.extend([ev.TextDelta(6, 0, 0, "b")])
    assert str(gap.value) == "TextDelta with seq 6 where 5 is due"
    log = a_response().finish().log
    with pytest.raises(LogError) as late:
        log.extend([ev.Cancelled(len(log), Usage(0, 0))])
    assert str(late.value) == f"Cancelled with seq {len(log)} after the terminal event"


def test_a_file_that_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    """Read ahead, so there is no row to name."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(a_response().finish().log.lines()) + b"\xff\n")
    with path.open(encoding="utf-8") as lines, pytest.raises(LogError) as caught:
        EventLog.from_lines(lines)
    assert str(caught.value) == (
        "not UTF-8: invalid start byte; a file opened as bytes tells the row"
    )


def test_an_upcast_is_still_the_function_that_was_declared() -> None:
    upcasts = Upcasts(Version(1, 1), Version(1, 2))

    def same(row: Row) -> Row:
        return row

    assert upcasts.step(Version(1, 1))(same) is same
