"""The tail of a log, for a reader that resumes after a sequence number it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory import events as ev
from responsory.errors import CursorExpired
from responsory.projections.text import DONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.log import EventLog
    from responsory.projections.responses import ResponsesStream


def tail(log: EventLog, starting_after: int | None = None) -> Sequence[ev.Event]:
    """The events after ``starting_after``; None is from the start. Live, more will follow.

    A log that was recovered after a crash can end below a number that a client has seen, because
    the last deltas were never stored. So a cursor past the end of an ended log is answered with the
    events that closed it: every client sees the end. A cursor within an ended log is taken at its
    word, for the log does not say where it was recovered. Raises CursorExpired when deltas after
    the cursor were dropped, ValueError for a negative cursor.
    """
    first = 0 if starting_after is None else starting_after + 1
    if first < 0:
        raise ValueError(f"no sequence number is {starting_after}")
    if log.terminal and first > log.seq:
        return _closing_group(log)
    if not log.compacted:
        return log[first:]
    found = [event for event in log if event.seq >= first]
    if len(found) != max(0, log.seq - first):
        raise CursorExpired(f"the deltas after sequence number {starting_after} were dropped")
    return found


def _closing_group(log: EventLog) -> Sequence[ev.Event]:
    """The last atomic group: the close cascade of the item that was open, if any, and the end."""
    start = len(log) - 1
    for kinds in CLOSING:
        if start and isinstance(log[start - 1], kinds):
            start -= 1
    return log[start:]


CLOSING: tuple[tuple[type[ev.Event], ...], ...] = (
    (ev.Errored,),
    (ev.ItemDone,),
    (ev.PartDone, ev.InputDone),
    (ev.TextDone, ev.RefusalDone, ev.ReasoningDone),
)
"""What a closing group can hold before its last event, from the end."""


def resume(
    stream: ResponsesStream, log: EventLog, starting_after: int | None = None
) -> list[bytes]:
    """The frames that a resumed reader is owed now, byte for byte those of the first time.

    ``stream`` is fresh; it has seen the whole log afterwards, and live events can be fed to it.
    Raises as ``tail`` does.
    """
    owed = tail(log, starting_after)
    stream.feed(0, log[: len(log) - len(owed)])
    if stream.ended:
        return [DONE]
    return stream.feed(0, owed)
