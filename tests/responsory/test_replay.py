"""What is a log: replay takes what a machine can have written, and nothing else.

Two oracles that share no code with replay: ``check_log``, which knows no command, and the set of
all logs that short words of commands give.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory import EventLog, IllegalTransition, Response, State, Usage
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
from responsory.errors import LogError
from responsory.testing import InvariantError, a_response, check_log
from responsory.testing.strategies import logs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

USAGE = Usage(1, 1)
CREATED = ev.Created(0, "t", 1, False, {})
RUNNING = [CREATED, ev.InProgress(1)]
MESSAGE = [*RUNNING, ev.ItemAdded(2, 0, "message")]
PART = [*MESSAGE, ev.PartAdded(3, 0, 0, "output_text")]
TEXT = [*PART, ev.TextDelta(4, 0, 0, "a")]
DONE = [*TEXT, ev.TextDone(5, 0, 0, "a")]
PART_DONE = [*DONE, ev.PartDone(6, 0, 0)]
CUT = [*PART_DONE, ev.ItemDone(7, 0, "incomplete")]
CLOSED = [*PART_DONE, ev.ItemDone(7, 0, "completed")]
REASONING = [*RUNNING, ev.ItemAdded(2, 0, "reasoning")]
CALL = [*RUNNING, ev.ItemAdded(2, 0, "function_call", None, "f")]
CALL_CLOSED = [*CALL, ev.InputDone(3, 0, ""), ev.ItemDone(4, 0, "completed")]


def evolved(event: Any, **fields: Any) -> Any:
    """The same event with other values."""
    return attrs.evolve(event, **fields)


def renumbered(events: Sequence[ev.Event]) -> list[ev.Event]:
    return [evolved(event, seq=seq) for seq, event in enumerate(events)]


FAULTS: dict[str, list[ev.Event]] = {
    "no start": [ev.InProgress(0)],
    "accepted twice": [CREATED, CREATED],
    "a second InProgress": [*RUNNING, ev.InProgress(2)],
    "an item before InProgress": [CREATED, ev.ItemAdded(1, 0, "message")],
    "an item in a queue": [ev.Created(0, "t", 1, True, {}), ev.Queued(1), *MESSAGE[2:]],
    "a queue in the foreground": [CREATED, ev.Queued(1)],
    "a first item with index 7": [*RUNNING, ev.ItemAdded(2, 7, "message"), *TEXT[3:]],
    "a first part with index 1": [
        *MESSAGE,
        ev.PartAdded(3, 0, 1, "output_text"),
        ev.TextDelta(4, 0, 1, "a"),
    ],
    "a delta of another item": [*TEXT, ev.TextDelta(5, 1, 0, "a")],
    "a delta of another part": [*TEXT, ev.TextDelta(5, 0, 1, "a")],
    "a delta outside an item": [*RUNNING, ev.TextDelta(2, 0, 0, "a")],
    "a delta after TextDone": [*DONE, ev.TextDelta(6, 0, 0, "a")],
    "an empty delta": [*TEXT, ev.TextDelta(5, 0, 0, "")],
    "PartDone without TextDone": [*TEXT, ev.PartDone(5, 0, 0)],
    "TextDone that is not the sum": [*TEXT, ev.TextDone(5, 0, 0, "b"), *CUT[6:]],
    "an item after Errored": [*CUT, ev.Errored(8, "c", "m"), ev.ItemAdded(9, 1, "message")],
    "an item after Errored, in idle": [
        *RUNNING,
        ev.Errored(2, "c", "m"),
        ev.ItemAdded(3, 0, "message"),
    ],
    "Failed without Errored": [*CUT, ev.Failed(8, USAGE, "c", "m")],
    "Failed unlike Errored": [*CUT, ev.Errored(8, "c", "m"), ev.Failed(9, USAGE, "d", "m")],
    "Completed without an item": [*RUNNING, ev.Completed(2, USAGE)],
    "Incomplete without an item": [*RUNNING, ev.Incomplete(2, USAGE, "max_output_tokens")],
    "Completed after a cut item": [*CUT, ev.Completed(8, USAGE)],
    "Cancelled after a whole item": [*CLOSED, ev.Cancelled(8, USAGE)],
    "Completed in an open item": [*TEXT, ev.Completed(5, USAGE)],
    "text in a reasoning item": [
        *REASONING,
        ev.PartAdded(3, 0, 0, "output_text"),
        ev.TextDelta(4, 0, 0, "a"),
    ],
    "reasoning in a message": [
        *MESSAGE,
        ev.PartAdded(3, 0, 0, "reasoning_text"),
        ev.ReasoningDelta(4, 0, 0, "a"),
    ],
    "a part of the same kind": [
        *PART_DONE,
        ev.PartAdded(7, 0, 1, "output_text"),
        ev.TextDelta(8, 0, 1, "a"),
    ],
    "an item without a part": [*MESSAGE, ev.ItemDone(3, 0, "completed"), ev.Completed(4, USAGE)],
    "a message of the same phase": [
        *CLOSED,
        ev.ItemAdded(8, 1, "message"),
        ev.PartAdded(9, 1, 0, "output_text"),
        ev.TextDelta(10, 1, 0, "a"),
    ],
    "a call without a name": [*RUNNING, ev.ItemAdded(2, 0, "function_call")],
    "a message with a name": [*RUNNING, ev.ItemAdded(2, 0, "message", None, "f"), *TEXT[3:]],
    "a call's input in a message": [*MESSAGE, ev.InputDelta(3, 0, "a")],
    "input after InputDone": [*CALL_CLOSED[:4], ev.InputDelta(4, 0, "a")],
    "an event after the end": [*CALL_CLOSED, ev.Completed(5, USAGE), ev.Cancelled(6, USAGE)],
    "the end inside Accept": [CREATED],
    "the end inside an opening": MESSAGE,
    "the end before a first delta": PART,
    "the end after TextDone": DONE,
    "the end after PartDone": PART_DONE,
    "the end after ItemDone": CLOSED,
    "the end after a cut item": CUT,
    "the end after InputDone": CALL_CLOSED[:4],
    "the end after Errored": [*CUT, ev.Errored(8, "c", "m")],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_that_no_machine_can_have_written_is_refused(fault: str) -> None:
    with pytest.raises(LogError, match=r"cannot follow|is due|another .* than is due"):
        Response.replay(FAULTS[fault])
    with pytest.raises(InvariantError):
        check_log(FAULTS[fault])


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [*TEXT, ev.PartDone(5, 0, 0)],
            "PartDone with seq 5 cannot follow in state `message.text`",
        ),
        (DONE, "TextDone with seq 5 cannot follow in state `message.text` with next seq 5"),
        (
            [*TEXT[:3], ev.TextDelta(4, 0, 0, "a")],
            "TextDelta with seq 4 where PartAdded with seq 3 is due",
        ),
        ([*TEXT, ev.TextDelta(5, 1, 0, "b")], "TextDelta with seq 5 has another item than is due"),
        ([CREATED], "the log ends inside a group: InProgress with seq 1 is due"),
    ],
)
def test_the_error_names_the_place(events: list[ev.Event], message: str) -> None:
    with pytest.raises(LogError) as caught:
        Response.replay(events)
    assert str(caught.value).startswith(message)


def accepts(log: Sequence[ev.Event]) -> bool:
    """Whether replay takes it."""
    try:
        Response.replay(log)
    except LogError:
        return False
    return True


def holds(log: Sequence[ev.Event]) -> bool:
    """Whether ``check_log`` takes it."""
    try:
        check_log(log)
    except InvariantError:
        return False
    return True


def filled(events: Sequence[ev.Event]) -> list[ev.Event]:
    """A log with made-up deltas in its gaps: all units but as many as there are deltas less one in
    the first, one in each other; the gaps that no Done event explains stay."""
    whole: list[ev.Event] = []
    for event in events:
        gap = event.seq - (whole[-1].seq if whole else -1) - 1
        if gap > 0 and isinstance(event, ev.TextDone | ev.RefusalDone | ev.ReasoningDone):
            entries = event.logprobs if isinstance(event, ev.TextDone) else ()
            units: list[Any] = [*event.text, *entries]
            kind: Any = {
                ev.TextDone: ev.TextDelta,
                ev.RefusalDone: ev.RefusalDelta,
                ev.ReasoningDone: ev.ReasoningDelta,
            }[type(event)]
            head = len(units) - gap + 1
            for offset, part in enumerate([units[:head], *([unit] for unit in units[head:])]):
                text = "".join(unit for unit in part if isinstance(unit, str))
                own = tuple(unit for unit in part if not isinstance(unit, str))
                seq, more = event.seq - gap + offset, ((own,) if own else ())
                whole.append(kind(seq, event.item, event.part, text, *more))
        elif gap > 0 and isinstance(event, ev.InputDone):
            head = len(event.text) - gap + 1
            for offset, text in enumerate([event.text[:head], *event.text[head:]]):
                whole.append(ev.InputDelta(event.seq - gap + offset, event.item, text))
        whole.append(event)
    return whole


def is_log(events: Sequence[ev.Event]) -> bool:
    """Whether ``check_log`` takes it, or a whole log that it can be the compaction of."""
    if holds(events):
        return True
    whole_deltas = any(type(event) in ev.DELTAS for event in events)
    ended = bool(events) and type(events[-1]) in ev.ENDINGS
    return ended and not whole_deltas and holds(filled(events))


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


def mutations(log: Sequence[ev.Event]) -> Iterator[list[ev.Event]]:
    for at in range(len(log)):
        yield from mutations_at(log, at)


@settings(deadline=None)
@given(logs() | logs(ended=False), st.data())
def test_a_mutated_log_is_refused_unless_it_is_one(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log = made[0][:]
    assert accepts(log)
    assert holds(log)
    for at in data.draw(st.lists(st.integers(0, len(log) - 1), max_size=5)):
        mutant = data.draw(st.sampled_from(list(mutations_at(log, at))))
        assert accepts(mutant) == is_log(mutant), mutant


ALPHABET: tuple[Command, ...] = (
    Accept("t", 1),
    Accept("t", 1, background=True),
    Start(),
    Text("a"),
    Text("b", (), "commentary"),
    Refusal("c"),
    Reasoning("d"),
    CallOpened("function", "f"),
    CallInput("e"),
    CallClosed(),
    Finish("stop", USAGE),
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


def test_every_mutation_of_every_short_log() -> None:
    """A mutant is a log exactly when some word of commands gives it."""
    whole, compacted = {repr([])}, set()
    for log in written(5):
        whole.add(repr(log))
        if type(log[-1]) in ev.ENDINGS:
            compacted.add(repr(EventLog(log).compact()[:]))
    taken = refused = 0
    for log in written(3):
        for mutant in mutations(log):
            name = repr(mutant)
            known = name in whole or name in compacted
            assert accepts(mutant) == is_log(mutant) == known, mutant
            assert holds(mutant) == (name in whole), mutant
            taken += known
            refused += not known
    assert taken > 500
    assert refused > 10_000


# --- compacted logs -----------------------------------------------------------------------------


@settings(deadline=None)
@given(logs(), st.data())
def test_a_mutated_compacted_log_is_refused_unless_it_is_one(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log = made[0].compact()[:]
    assert Response.replay(log).view() == Response.replay(made[0]).view()
    at = data.draw(st.integers(0, len(log) - 1))
    mutant = data.draw(st.sampled_from(list(mutations_at(log, at))))
    assert accepts(mutant) == is_log(mutant), mutant


def test_gaps_that_compaction_does_not_leave() -> None:
    made = a_response().text("ab", "c").refusal("d").finish().log
    short = made.compact()[:]
    assert accepts(short)
    for drop in range(len(made)):
        partly = [event for event in made if event.seq != drop]
        with pytest.raises(LogError):
            Response.replay(partly)
    with pytest.raises(LogError, match="1 deltas were dropped, and 2 were not"):
        Response.replay([event for event in made if not isinstance(event, ev.RefusalDelta)])
    with pytest.raises(LogError, match="the log has not ended"):
        Response.replay(short[:-1])
    far = evolved(short[4], seq=10**15)
    with pytest.raises(LogError, match="sums up 3 units, and 999999999999996 deltas are missing"):
        Response.replay([*short[:4], far])


# --- apply, copy, and what nobody can reach -----------------------------------------------------


@settings(deadline=None)
@given(logs(), st.data())
def test_a_follower_takes_whole_groups(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log, groups = made
    follower, at = Response(), 0
    cut = data.draw(st.integers(0, len(groups)))
    for length in [sum(groups[:cut]), *groups[cut:]]:
        follower.apply(log[at : at + length])
        at += length
        assert follower.view() == Response.replay(log[:at]).view()


def test_a_refused_group_changes_nothing() -> None:
    machine = Response.replay(TEXT)
    before = machine.view()
    with pytest.raises(LogError):
        machine.apply(CLOSED[5:])
    assert machine.view() == before
    with pytest.raises(LogError):
        machine.apply([ev.TextDelta(5, 0, 0, "b"), ev.TextDelta(7, 0, 0, "c")])
    assert machine.seq == 6
    assert machine.receive(Text("c")) == [ev.TextDelta(6, 0, 0, "c")]


def test_a_copy_is_independent() -> None:
    machine = Response.replay(TEXT)
    other = copy.copy(machine)
    assert other.view() == machine.view()
    before = machine.view()
    other.receive(Text("b"))
    other.receive(Finish("stop", USAGE))
    assert machine.view() == before
    assert (machine.state, other.state) == (State.MESSAGE_TEXT, State.COMPLETED)
    (done,) = [event for event in machine.receive(Cancel(USAGE)) if isinstance(event, ev.TextDone)]
    assert done.text == "a"


@pytest.mark.parametrize("name", ["state", "seq", "terminal"])
def test_nobody_can_set_what_a_machine_shows(name: str) -> None:
    machine = Response()
    with pytest.raises(AttributeError):
        setattr(machine, name, getattr(machine, name))
    assert [public for public in dir(machine) if not public.startswith("_")] == [
        "apply", "decide", "receive", "replay", "seq", "state", "terminal", "view",
    ]  # fmt: skip
    with pytest.raises(AttributeError):
        machine.anything = 1  # type: ignore[attr-defined]  # the point of the test
