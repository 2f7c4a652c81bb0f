"""Replay and apply: faults that have a name, what compaction leaves, groups, copies.

That replay takes what a machine can have written and nothing else is shown in ``test_damage``.
"""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory import EventLog, Response, State, Usage
from responsory import events as ev
from responsory.commands import Cancel, Finish, Text
from responsory.errors import FIRST_ROW, LogError
from responsory.testing import InvariantError, a_response, check_log
from responsory.testing.strategies import logs

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
    with pytest.raises(LogError, match=r"^row \d+: .*(is due|after the end)"):
        Response.replay(FAULTS[fault])
    with pytest.raises(InvariantError):
        check_log(FAULTS[fault])


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [CREATED],
            "row 3: the log ends inside a group: InProgress with seq 1 is due",
        ),
        (
            DONE,
            "row 8: the log ends inside a group: PartDone with seq 6 is due",
        ),
        (
            [ev.InProgress(0)],
            "row 2: InProgress with seq 0 cannot follow in state `new`: Created with seq 0 is due",
        ),
        (
            [*TEXT, ev.PartDone(5, 0, 0)],
            "row 7: PartDone with seq 5 cannot follow in state `message.text`: "
            "TextDelta or TextDone with seq 5 is due",
        ),
        (
            [*TEXT[:3], ev.TextDelta(4, 0, 0, "a")],
            "row 5: TextDelta with seq 4 where 3 is due",
        ),
        (
            [*TEXT[:3], ev.TextDelta(3, 0, 0, "a")],
            "row 5: TextDelta with seq 3 cannot follow ItemAdded: PartAdded with seq 3 is due",
        ),
        (
            [*TEXT, ev.TextDelta(5, 1, 0, "b")],
            "row 7: TextDelta with seq 5 has another item than is due",
        ),
        (
            [*TEXT, ev.TextDelta(5, 0, 0, "")],
            "row 7: TextDelta with seq 5 has another text than is due",
        ),
        (
            [*CALL, ev.InputDelta(3, 0, "")],
            "row 5: InputDelta with seq 3 has another text than is due",
        ),
        (
            [*RUNNING, ev.ItemAdded(2, 0, "function_call")],
            "row 4: ItemAdded with seq 2 has another name than is due",
        ),
        (
            [*CLOSED, ev.ItemAdded(8, 1, "message"), *PART[3:]],
            "row 10: ItemAdded with seq 8 has another phase than is due",
        ),
        (
            [*TEXT, ev.TextDone(5, 0, 0, "b"), *CUT[6:], ev.Cancelled(8, USAGE)],
            "row 7: TextDone with seq 5 has another text than is due",
        ),
        (
            [*CLOSED, ev.Cancelled(8, USAGE)],
            "row 10: Cancelled with seq 8 cannot follow ItemDone: "
            "ItemAdded or Completed with seq 8 is due",
        ),
        (
            [*CUT, ev.Errored(8, "c", "m"), ev.Failed(9, USAGE, "d", "e")],
            "row 11: Failed with seq 9 has another code, message than is due",
        ),
        (
            [*CALL_CLOSED, ev.Completed(5, USAGE), ev.Cancelled(6, USAGE)],
            "row 8: Cancelled with seq 6 after the end, in state `completed`",
        ),
    ],
)
def test_the_error_names_the_row(events: list[ev.Event], message: str) -> None:
    with pytest.raises(LogError) as caught:
        Response.replay(events)
    assert str(caught.value) == message
    assert caught.value.row == int(message.split(":")[0].removeprefix("row "))


# --- compacted logs -----------------------------------------------------------------------------


def test_gaps_that_compaction_does_not_leave() -> None:
    made = a_response().text("ab", "c").refusal("d").finish().log
    short = made.compact()[:]
    assert Response.replay(short).view() == Response.replay(made).view()
    for drop in range(len(made)):
        partly = [event for event in made if event.seq != drop]
        with pytest.raises(LogError) as caught:
            Response.replay(partly)
        assert caught.value.row == drop + FIRST_ROW
    with pytest.raises(LogError, match=r"^row 11: RefusalDone with seq 10 where 9 is due"):
        Response.replay([event for event in made if not isinstance(event, ev.RefusalDelta)])
    with pytest.raises(
        LogError, match=r"^row 9: RefusalDelta with seq 9 is a delta in a compacted log"
    ):
        Response.replay([event for event in made if not isinstance(event, ev.TextDelta)])
    with pytest.raises(LogError, match=r"^row 12: deltas were dropped, and the log has not ended"):
        Response.replay(short[:-1])
    done: Any = short[4]
    far = attrs.evolve(done, seq=10**15)
    with pytest.raises(
        LogError,
        match=r"^row 6: TextDone with seq 10{15} sums up 3 units, and 9{14}6 deltas are missing",
    ):
        Response.replay([*short[:4], far])


def test_a_sum_of_what_was_not_open() -> None:
    """Its dropped deltas are wrong, and the row is that of the sum."""
    short = a_response().text("ab", "c").finish().log.compact()[:]
    assert isinstance(short[4], ev.TextDone)
    other = ev.RefusalDone(short[4].seq, 0, 0, short[4].text)
    with pytest.raises(LogError) as caught:
        Response.replay([*short[:4], other, *short[5:]])
    assert str(caught.value) == (
        "row 6: the deltas that it sums up: RefusalDelta with seq 4 cannot follow PartAdded: "
        "TextDelta or TextDone with seq 4 is due"
    )


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
    with pytest.raises(LogError, match=r"^row 10: the log ends inside a group"):
        machine.apply(CLOSED[5:])
    assert machine.view() == before
    with pytest.raises(LogError, match=r"^row 8: TextDelta with seq 7 has another seq than is due"):
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
