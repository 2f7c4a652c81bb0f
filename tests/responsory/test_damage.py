"""Stored logs that were damaged: cut anywhere, rows moved, one value changed.

Each is refused with the number of a row, or is a log that some machine can have written. What
replay finds is checked event by event in ``test_mutations``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory import EventLog, Logprob, Response, TopLogprob
from responsory import events as ev
from responsory.errors import FIRST_ROW, LogError
from responsory.rows import SHAPES
from responsory.testing import InvariantError, a_response, check_log
from responsory.testing.strategies import logs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Made = tuple[EventLog, list[int]]
"""A log, and the lengths of its groups."""


def holds(log: Sequence[ev.Event]) -> bool:
    """Whether ``check_log``, which shares no code with replay, takes it."""
    try:
        check_log(log)
    except InvariantError:
        return False
    return True


def read(lines: Iterable[bytes]) -> EventLog:
    """A log that was read and replayed."""
    log = EventLog.from_lines(lines)
    Response.replay(log)
    return log


def row_of_error(lines: Iterable[bytes]) -> int | None:
    """The row that is named, None where the log is taken."""
    try:
        read(lines)
    except LogError as error:
        return named(error)
    return None


def named(error: LogError) -> int:
    """The row, which every error has, and tells first."""
    assert error.row is not None
    assert str(error).startswith(f"row {error.row}: ")
    return error.row


def rich_log() -> EventLog:
    """Every kind of item, with what it can carry, and text that is more than one byte long."""
    made = a_response(echo={"model": "tiny", "tools": [{"name": "f"}], "top_p": 0.5})
    made.reasoning("hm\u2028", "m").text("é", "\n", phase="commentary").text("b")
    made.tokens(Logprob("é", -0.5, "é".encode(), (TopLogprob("?", -1.0, b"\xff"),))).refusal("c")
    made.call("f", '{"a"', ": 1}", call_id="call_1").call("g", "x", kind="custom")
    return made.finish(stop="</s>").log


stored_logs = st.tuples(logs(), st.booleans()).map(
    lambda pair: pair[0][0].compact() if pair[1] else pair[0][0]
)


@pytest.mark.parametrize("log", [rich_log(), rich_log().compact()], ids=["whole", "compacted"])
def test_every_cut_of_the_bytes(log: EventLog) -> None:
    """Whatever byte a file ends after, it is a log that has not ended yet or names its last line,
    or the line that is missing."""
    lines = list(log.lines())
    stored = b"".join(lines)
    assert read(stored.splitlines(keepends=True)) == log
    taken = 0
    for end in range(len(stored)):
        cut = stored[:end].splitlines(keepends=True)
        row = row_of_error(cut)
        if row is None:
            whole = [line.removesuffix(b"\n") for line in cut]
            assert whole == [line.removesuffix(b"\n") for line in lines[: len(cut)]]
            assert holds(read(cut)[:]) or end == len(stored) - 1
            taken += 1
        elif cut and cut[-1].removesuffix(b"\n") == lines[len(cut) - 1].removesuffix(b"\n"):
            assert row == len(cut) + 1
        else:
            assert row == max(len(cut), 1)
    assert taken > 10 if not log.compacted else taken == 1


@settings(deadline=None)
@given(logs() | logs(ended=False))
def test_every_cut_between_rows(made: Made) -> None:
    """A log that lacks its end is one if it lacks whole groups; else the missing row is told."""
    log, groups = made
    lines = list(log.lines())
    borders = {sum(groups[:count]) for count in range(len(groups) + 1)}
    assert row_of_error([]) == 1
    for end in range(len(log)):
        told = row_of_error(lines[: end + 1])
        assert told == (None if holds(log[:end]) else end + FIRST_ROW)
        assert told is None or end not in borders


@settings(deadline=None)
@given(stored_logs)
def test_every_dropped_doubled_and_swapped_row(log: EventLog) -> None:
    lines = list(log.lines())
    for at in range(len(lines)):
        row = at + 1
        before, line, after = lines[:at], lines[at], lines[at + 1 :]
        assert row_of_error([*before, line, line, *after]) == row + 1
        without = row_of_error([*before, *after])
        if not after:
            assert without == (None if holds(log[:-1]) and not log.compacted else row)
            continue
        assert without == row
        told = row_of_error([*before, after[0], line, *after[1:]])
        # A sum that comes too early in a compacted log can have the number of dropped deltas.
        assert told == row or (log.compacted and told == row + 1)


@settings(deadline=None)
@given(stored_logs, st.data())
def test_every_row_broken_inside(log: EventLog, data: st.DataObject) -> None:
    lines = list(log.lines())
    for at, line in enumerate(lines):
        cut = data.draw(st.integers(0, len(line) - 2))
        for broken in (line[:cut], line[:cut] + b"\n", line[:-1] + line, b"\xff" + line):
            assert row_of_error([*lines[:at], broken, *lines[at + 1 :]]) == at + 1


OTHERS: list[Any] = [None, True, False, 0, 1, -1, 0.5, 10**400, "", "x", "\ud800", [], {}, [[]]]


def changed(value: Any) -> Iterator[Any]:
    """The same JSON with one value in it, at any depth, of another type or out of its range."""
    for other in OTHERS:
        if type(other) is not type(value) or other != value:
            yield other
    if isinstance(value, list):
        for at, inner in enumerate(value):
            for other in changed(inner):
                yield [*value[:at], other, *value[at + 1 :]]
            yield [*value[:at], *value[at + 1 :]]
        yield [*value, None]
    elif isinstance(value, dict):
        for key, inner in value.items():
            for other in changed(inner):
                yield {**value, key: other}
            yield {name: inner for name, inner in value.items() if name != key}
        yield {**value, "one more": 1}


FREE = {"id", "created_at", "echo", "name", "call_id", "usage", "completed_at", "stop"}
"""What no other row of a log tells; in a compacted one the text, too, is told once."""
TOLD_LATER = {"header", "created", "item_added", "text_delta", "refusal_delta", "reasoning_delta",
              "input_delta"}  # fmt: skip
"""Rows whose values a later row tells again: background, phase and text."""


@pytest.mark.parametrize("log", [rich_log(), rich_log().compact()], ids=["whole", "compacted"])
def test_every_changed_value(log: EventLog) -> None:
    """It is refused in its row, or in the first that tells otherwise, or nothing else tells it."""
    rows: list[Any] = list(log.rows())
    lines = list(log.lines())
    refused, free = 0, FREE | ({"text", "logprobs", "cuts"} if log.compacted else set())
    for at, row in enumerate(rows):
        kind = "header" if at == 0 else row[0]
        for other in changed(row):
            damaged = [*lines[:at], json.dumps(other).encode(), *lines[at + 1 :]]
            told = row_of_error(damaged)
            if told is None:
                wrong = [name for event, own in zip(read(damaged), log, strict=True)
                         for name in SHAPES[type(own)].names
                         if getattr(event, name) != getattr(own, name)]  # fmt: skip
                assert set(wrong) <= free, other
            elif told > at + 1:
                assert kind in TOLD_LATER, other
            else:
                assert told == at + 1, other
                refused += 1
    assert refused > 2000
