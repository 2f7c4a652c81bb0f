"""Dropping deltas, and putting them back.

A Done event holds the sum of its part's deltas, and the gap before it in ``seq`` says how many they
were. So a compacted log still shows whether a machine can have written the whole one.
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from responsory import events as ev
from responsory.cuts import Cuts, CutsSoFar
from responsory.errors import FIRST_ROW, LogError
from responsory.rows import named
from responsory.values import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from responsory.values import Logprob

Done: TypeAlias = ev.TextDone | ev.RefusalDone | ev.ReasoningDone | ev.InputDone

_seq = operator.attrgetter("seq")


def without_deltas(events: Iterable[ev.Event], cuts: CutsSoFar | None = None) -> Iterator[ev.Event]:
    """What compaction leaves: a text tells its cuts where they say more than it does. ``cuts``:
    those of the part that is open before these events."""
    cuts = CutsSoFar() if cuts is None else cuts
    for event in events:
        if isinstance(event, ev.TextDelta):
            cuts.add(event)
        elif isinstance(event, ev.TextDone):
            yield _with_cuts(event, cuts.take(event))
        elif type(event) not in ev.DELTAS:
            yield event


def _with_cuts(done: ev.TextDone, found: Cuts) -> ev.TextDone:
    return ev.TextDone(done.seq, done.item, done.part, done.text, done.logprobs, done.ids, found)


def dropped(event: ev.Event, due: int) -> int:
    """How many deltas were dropped before an event of a compacted log. ``due``: the number after
    that of the event before it. Raises LogError where compaction leaves no such event."""
    missing = event.seq - due
    if type(event) in ev.DELTAS:
        raise LogError(f"{named(event)} is a delta in a compacted log")
    if missing and not (missing > 0 and isinstance(event, Done)):
        raise LogError(f"{named(event)} where {due} is due")
    if isinstance(event, Done) and missing > (most := _units(event)):
        raise LogError(f"{named(event)} sums up {most} units, and {missing} deltas are missing")
    return missing


class Restored(NamedTuple):
    """The whole log that a stored one stands for.

    ``rows[i]`` is the stored row of ``events[i]``, or of the Done event that sums it up; there is
    one more, where the next row would be. ``fault`` is the first place where the log is neither
    whole nor compacted: ``events`` end before it.
    """

    events: list[ev.Event]
    rows: Sequence[int]
    fault: LogError | None = None

    def first(self, error: LogError) -> LogError:
        """What is wrong first, where ``error`` was found in ``events``: the row that it names is
        counted as if all of these were stored."""
        place = (error.row or FIRST_ROW) - FIRST_ROW
        row = self.rows[place]
        if self.fault is not None and self.fault.row == row:
            return self.fault
        if place < len(self.events) and self.rows[place + 1] == row:
            return LogError(f"the deltas that it sums up: {error.reason}", row)
        return LogError(error.reason, row)


def restore(events: Iterable[ev.Event]) -> Restored:
    """As many deltas before each Done event as are missing there, cut anywhere. A log is whole from
    its first delta on, and compacted from its first gap on."""
    stored = list(events)
    end = len(stored) + FIRST_ROW
    if all(map(operator.eq, map(_seq, stored), itertools.count())):
        return Restored(stored, range(FIRST_ROW, end + 1))
    whole: list[ev.Event] = []
    rows: list[int] = []
    kept = compacted = False
    for row, event in enumerate(stored, FIRST_ROW):
        kept = kept or (type(event) in ev.DELTAS and not compacted)
        try:
            missing = _none_dropped(event, len(whole)) if kept else dropped(event, len(whole))
        except LogError as error:
            return Restored(whole, [*rows, row], LogError(error.reason, row))
        if missing and isinstance(event, Done):
            compacted = True
            whole += _deltas(event, missing)
            if isinstance(event, ev.TextDone):
                event = _with_cuts(event, ())
        whole.append(event)
        rows += [row] * (missing + 1)
    fault = None
    if compacted and type(whole[-1]) not in ev.ENDINGS:
        fault = LogError("deltas were dropped, and the log has not ended", end)
    return Restored(whole, [*rows, end], fault)


def _none_dropped(event: ev.Event, due: int) -> int:
    if event.seq != due:
        raise LogError(f"{named(event)} where {due} is due")
    return 0


def _units(done: Done) -> int:
    """The most deltas that can add up to it: none is empty."""
    logprobs = done.logprobs if isinstance(done, ev.TextDone) else ()
    return len(done.text) + len(logprobs) + len(done.ids)


def _deltas(done: Done, count: int) -> Iterator[ev.Event]:
    """``count`` deltas, at most its units, that add up to ``done``: one unit each, and the rest in
    the last. How many tokens they counted was dropped with them."""
    logprobs = done.logprobs if isinstance(done, ev.TextDone) else ()
    units: list[tuple[str, tuple[Logprob, ...], tuple[int, ...]]]
    units = [(character, (), ()) for character in done.text]
    units += [("", (entry,), ()) for entry in logprobs]
    units += [("", (), (token,)) for token in done.ids]
    rest = units[count - 1 :]
    last = (
        "".join([text for text, _, _ in rest]),
        tuple([entry for _, own, _ in rest for entry in own]),
        tuple([token for _, _, told in rest for token in told]),
    )
    for seq, (text, own, told) in enumerate([*units[: count - 1], last], done.seq - count):
        tokens = Tokens(told, 0) if told else None
        match done:
            case ev.TextDone():
                yield ev.TextDelta(seq, done.item, done.part, text, own, tokens)
            case ev.RefusalDone():
                yield ev.RefusalDelta(seq, done.item, done.part, text, tokens)
            case ev.ReasoningDone():
                yield ev.ReasoningDelta(seq, done.item, done.part, text, tokens)
            case ev.InputDone():
                yield ev.InputDelta(seq, done.item, text, tokens)
