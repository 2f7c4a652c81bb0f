"""Dropping deltas, and putting them back.

A Done event holds the sum of its part's deltas, and the gap before it in ``seq`` says how many they
were. So a compacted log still shows whether a machine can have written the whole one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from responsory import events as ev
from responsory.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from responsory.values import Logprob

Done: TypeAlias = ev.TextDone | ev.RefusalDone | ev.ReasoningDone | ev.InputDone


def without_deltas(events: Iterable[ev.Event]) -> Iterator[ev.Event]:
    """What compaction leaves."""
    return (event for event in events if type(event) not in ev.DELTAS)


def restored(events: Iterable[ev.Event]) -> list[ev.Event]:
    """The events with as many deltas before each Done event as are missing there, cut anywhere.

    A whole log comes back as it is. Raises LogError where some deltas were dropped and others not,
    where fewer were summed up than are missing, and for a log with gaps that has not ended.
    """
    whole: list[ev.Event] = []
    seen = dropped = 0
    for event in events:
        missing = event.seq - (whole[-1].seq + 1 if whole else 0)
        if missing > 0 and isinstance(event, Done):
            dropped += missing
            whole += _deltas(event, missing)
        seen += type(event) in ev.DELTAS
        whole.append(event)
    if dropped and seen:
        raise LogError(f"{dropped} deltas were dropped, and {seen} were not")
    if dropped and type(whole[-1]) not in ev.ENDINGS:
        raise LogError("deltas were dropped, and the log has not ended")
    return whole


def _deltas(done: Done, count: int) -> Iterator[ev.Event]:
    """``count`` deltas that add up to ``done``: one unit each, and the rest in the last."""
    logprobs = done.logprobs if isinstance(done, ev.TextDone) else ()
    units: list[tuple[str, tuple[Logprob, ...]]] = [(character, ()) for character in done.text]
    units += [("", (entry,)) for entry in logprobs]
    if len(units) < count:
        raise LogError(f"seq {done.seq} sums up {len(units)} units, and {count} deltas are missing")
    rest = units[count - 1 :]
    last = ("".join(text for text, _ in rest), tuple(entry for _, own in rest for entry in own))
    for seq, (text, own) in enumerate([*units[: count - 1], last], done.seq - count):
        match done:
            case ev.TextDone():
                yield ev.TextDelta(seq, done.item, done.part, text, own)
            case ev.RefusalDone():
                yield ev.RefusalDelta(seq, done.item, done.part, text)
            case ev.ReasoningDone():
                yield ev.ReasoningDelta(seq, done.item, done.part, text)
            case ev.InputDone():
                yield ev.InputDelta(seq, done.item, text)
