"""Logs with an event dropped, doubled, moved or changed: replay refuses each, or it is a log too.

Two oracles that share no code with replay: ``check_log``, which knows no command, and the set of
all logs that short words of commands give. The second also tells which row is the first at which no
log can go on.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory import EventLog, IllegalTransition, Response, Usage
from responsory import events as ev
from responsory.commands import (
    Accept,
    CallClosed,
    CallInput,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Start,
    Text,
)
from responsory.errors import FIRST_ROW, LogError
from responsory.testing import InvariantError, check_log
from responsory.testing.strategies import logs
from responsory.values import Logprob, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

USAGE = Usage(1, 1)
Made = tuple[EventLog, list[int]]
"""A log, and the lengths of its groups."""


def evolved(event: Any, **fields: Any) -> Any:
    """The same event with other values."""
    return attrs.evolve(event, **fields)


def renumbered(events: Sequence[ev.Event]) -> list[ev.Event]:
    return [evolved(event, seq=seq) for seq, event in enumerate(events)]


def refused_at(events: Iterable[ev.Event]) -> int | None:
    """The row that replay names, None where it takes the events."""
    try:
        Response.replay(events)
    except LogError as error:
        return named(error)
    return None


def named(error: LogError) -> int:
    """The row, which every error has, and tells first."""
    assert error.row is not None
    assert str(error).startswith(f"row {error.row}: ")
    return error.row


# --- what is a log, without replay --------------------------------------------------------------


def holds(log: Sequence[ev.Event]) -> bool:
    """Whether ``check_log`` takes it."""
    try:
        check_log(log)
    except InvariantError:
        return False
    return True


def filled(events: Sequence[Any]) -> list[ev.Event]:
    """A log with made-up deltas in its gaps: all units but as many as there are deltas less one in
    the first, one in each other; the gaps that no Done event explains stay."""
    whole: list[ev.Event] = []
    for event in events:
        gap = event.seq - (whole[-1].seq if whole else -1) - 1
        if gap > 0 and type(event) in DELTA_OF:
            entries = event.logprobs if isinstance(event, ev.TextDone) else ()
            units = [*event.text, *entries, *event.ids]
            head = len(units) - gap + 1
            for offset, part in enumerate([units[:head], *([unit] for unit in units[head:])]):
                whole.append(made_up(event, event.seq - gap + offset, part))
            if isinstance(event, ev.TextDone):
                event = evolved(event, cuts=())
        whole.append(event)
    return whole


DELTA_OF: dict[type[ev.Event], Any] = {
    ev.TextDone: ev.TextDelta,
    ev.RefusalDone: ev.RefusalDelta,
    ev.ReasoningDone: ev.ReasoningDelta,
    ev.InputDone: ev.InputDelta,
}


def made_up(done: Any, seq: int, units: Sequence[object]) -> ev.Event:
    text = "".join(unit for unit in units if isinstance(unit, str))
    told = tuple(unit for unit in units if isinstance(unit, int))
    fields: dict[str, Any] = {"seq": seq, "item": done.item, "text": text}
    if told:
        fields["tokens"] = Tokens(told, 5)
    if not isinstance(done, ev.InputDone):
        fields["part"] = done.part
    if isinstance(done, ev.TextDone):
        fields["logprobs"] = tuple(unit for unit in units if isinstance(unit, Logprob))
    made: ev.Event = DELTA_OF[type(done)](**fields)
    return made


def is_log(events: Sequence[ev.Event]) -> bool:
    """Whether ``check_log`` takes it, or a whole log that it can be the compaction of."""
    if holds(events):
        return True
    whole_deltas = any(type(event) in ev.DELTAS for event in events)
    ended = bool(events) and type(events[-1]) in ev.ENDINGS
    return ended and not whole_deltas and holds(filled(events))


ALPHABET: tuple[Command, ...] = (
    Accept("t", 1),
    Accept("t", 1, background=True),
    Start(),
    Text("a"),
    Text("b", (), "commentary"),
    Refusal("c"),
    Reasoning("d", Tokens((7,), 1)),
    CallOpened("function", "f"),
    CallInput("e"),
    CallClosed(),
    Finish("stop", USAGE, None, None, (8, 9)),
    Finish("length", USAGE),
    Fail("server_error", "m", USAGE),
    Cancel(USAGE),
)


def written(length: int) -> Iterator[list[ev.Event]]:
    """The logs of all words up to a length."""
    frontier: list[tuple[Response, list[ev.Event]]] = [(Response(), [])]
    for _ in range(length):
        longer = []
        for machine, log in frontier:
            for command in ALPHABET:
                after = copy.copy(machine)
                try:
                    group = after.receive(command)
                except IllegalTransition:
                    continue
                if group:
                    longer.append((after, [*log, *group]))
                    yield longer[-1][1]
        frontier = longer


class Beginnings:
    """All beginnings of the logs of short words and of their compactions, as one tree by event."""

    def __init__(self, length: int) -> None:
        self.root: dict[str, Any] = {}
        self.logs: set[tuple[str, ...]] = {()}
        self.compacted: set[tuple[str, ...]] = set()
        for log in written(length):
            self.logs.add(self._grow(log))
            if type(log[-1]) in ev.ENDINGS:
                self.compacted.add(self._grow(EventLog(log).compact()))

    def _grow(self, log: Iterable[ev.Event]) -> tuple[str, ...]:
        names, node = tuple(map(repr, log)), self.root
        for name in names:
            node = node.setdefault(name, {})
        return names

    def first_row_off(self, events: Sequence[ev.Event]) -> int | None:
        """The first row that no log has after the rows before it; None for a log."""
        names, node = tuple(map(repr, events)), self.root
        for row, name in enumerate(names, FIRST_ROW):
            if name not in node:
                return row
            node = node[name]
        known = names in self.logs or names in self.compacted
        return None if known else FIRST_ROW + len(names)


@functools.cache
def beginnings() -> Beginnings:
    return Beginnings(5)


# --- one event dropped, doubled, moved or changed -----------------------------------------------


def mutations_at(log: Sequence[ev.Event], at: int) -> Iterator[list[ev.Event]]:
    """One event dropped, doubled, swapped with each later one, and with each index changed; the log
    with its old numbers and with new ones."""
    before, event, after = log[:at], log[at], log[at + 1 :]
    changed = [[*before, *after], [*before, event, event, *after]]
    for later in range(at + 1, len(log)):
        between = log[at + 1 : later]
        changed.append([*before, log[later], *between, event, *log[later + 1 :]])
    for index in ("item", "part", "seq"):
        value = getattr(event, index, None)
        if value is not None:
            others = [evolved(event, **{index: value + by}) for by in (-1, 1, 7)]
            changed += [[*before, other, *after] for other in others]
    for mutant in changed:
        yield mutant
        yield renumbered(mutant)


def test_every_mutation_of_every_short_log() -> None:
    """A mutant is a log exactly when some word of commands gives it, and else the row that replay
    names is the first that no such log has."""
    known, taken, refused = beginnings(), 0, 0
    for log in written(3):
        for at in range(len(log)):
            for mutant in mutations_at(log, at):
                off = known.first_row_off(mutant)
                assert refused_at(mutant) == off, mutant
                assert is_log(mutant) == (off is None), mutant
                assert holds(mutant) == (tuple(map(repr, mutant)) in known.logs), mutant
                taken += off is None
                refused += off is not None
    assert taken > 500
    assert refused > 10_000


def test_every_cut_of_every_short_log() -> None:
    """At the border of a group it is a log; inside, the row that is missing is named."""
    for log in written(4):
        stored = [log]
        if type(log[-1]) in ev.ENDINGS:
            stored.append(EventLog(log).compact()[:])
        for whole in stored:
            for end in range(len(whole)):
                cut = whole[:end]
                assert refused_at(cut) == beginnings().first_row_off(cut), cut


@settings(deadline=None)
@given(logs() | logs(ended=False), st.data())
def test_a_mutated_log_is_refused_unless_it_is_one(made: Made, data: st.DataObject) -> None:
    log = made[0][:]
    assert refused_at(log) is None
    assert holds(log)
    for at in data.draw(st.lists(st.integers(0, len(log) - 1), max_size=5)):
        mutant = data.draw(st.sampled_from(list(mutations_at(log, at))))
        check_refusal(mutant, log)


@settings(deadline=None)
@given(logs(), st.data())
def test_a_mutated_compacted_log_is_refused_unless_it_is_one(
    made: Made, data: st.DataObject
) -> None:
    log = made[0].compact()[:]
    assert Response.replay(log).view() == Response.replay(made[0]).view()
    at = data.draw(st.integers(0, len(log) - 1))
    mutant = data.draw(st.sampled_from(list(mutations_at(log, at))))
    check_refusal(mutant, log)


@settings(deadline=None)
@given(logs(), logs(), st.booleans(), st.data())
def test_rows_of_another_log(one: Made, other: Made, compact: bool, data: st.DataObject) -> None:
    log, strange = ((made.compact() if compact else made)[:] for made in (one[0], other[0]))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(log))] * 2)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(strange))] * 2)))
    spliced = [*log[:start], *strange[first:last], *log[end:]]
    check_refusal(spliced, log)
    check_refusal(renumbered(spliced), log)


def check_refusal(mutant: Sequence[ev.Event], log: Sequence[ev.Event]) -> None:
    """It is refused unless it is a log, and not before the first row that differs from ``log``:
    up to there a log goes on."""
    row = refused_at(mutant)
    assert (row is None) == is_log(mutant), mutant
    if row is not None:
        same = 0
        while same < min(len(mutant), len(log)) and mutant[same] == log[same]:
            same += 1
        assert FIRST_ROW + same <= row <= FIRST_ROW + len(mutant)
