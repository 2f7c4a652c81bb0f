"""What each event does to the machine, one at a time: from forced states, for most of what is
between the events of a group is no state that a command could find."""

from __future__ import annotations

from typing import Any

import pytest

from responsory import Response
from responsory import events as ev
from responsory.commands import Accept, CallOpened, Reasoning, Text
from responsory.extended import ExtendedState
from responsory.moves import MOVES
from responsory.states import State
from responsory.values import Logprob, Tokens, Usage

A, B = Logprob("a", -1.0, b"a"), Logprob("b", -2.0, b"b")
USAGE = Usage(3, 2)
JOINED, TEXT, LOGPROBS, IDS = ["once"], [" so", " far"], [A], [6]
TOLD = Tokens((7, 8), 3)

CHANGES: list[tuple[ev.Event, dict[str, Any]]] = [
    (ev.Created(0, "t", 1, False, {}), {"id": "t"}),
    (ev.Queued(1), {"state": State.QUEUED}),
    (ev.InProgress(1), {"state": State.IDLE}),
    (ev.ItemAdded(2, 5, "message"), {"item": 5, "part": -1, "phase": None}),
    (
        ev.ItemAdded(2, 5, "message", "final_answer"),
        {"item": 5, "part": -1, "phase": "final_answer"},
    ),
    (ev.ItemAdded(2, 5, "reasoning"), {"item": 5, "part": -1, "phase": None}),
    (
        ev.ItemAdded(2, 5, "function_call", None, "f"),
        {"item": 5, "part": -1, "phase": None, "state": State.CALL},
    ),
    (
        ev.ItemAdded(2, 5, "custom_tool_call", None, "f", "id"),
        {"item": 5, "part": -1, "phase": None, "state": State.CALL, "call_ids": {"old", "id"}},
    ),
    (ev.PartAdded(3, 8, 4, "output_text"), {"part": 4, "state": State.MESSAGE_TEXT}),
    (ev.PartAdded(3, 8, 4, "refusal"), {"part": 4, "state": State.MESSAGE_REFUSAL}),
    (ev.PartAdded(3, 8, 4, "reasoning_text"), {"part": 4, "state": State.REASONING_TEXT}),
    (ev.TextDelta(4, 8, 3, "x"), {"text": [*TEXT, "x"]}),
    (ev.TextDelta(4, 8, 3, "x", (B,)), {"text": [*TEXT, "x"], "logprobs": [A, B]}),
    (ev.TextDelta(4, 8, 3, "", (), TOLD), {"text": [*TEXT, ""], "ids": [6, 7, 8]}),
    (ev.RefusalDelta(4, 8, 3, "x"), {"text": [*TEXT, "x"]}),
    (ev.RefusalDelta(4, 8, 3, "x", TOLD), {"text": [*TEXT, "x"], "ids": [6, 7, 8]}),
    (ev.ReasoningDelta(4, 8, 3, "x", TOLD), {"text": [*TEXT, "x"], "ids": [6, 7, 8]}),
    (
        ev.InputDelta(4, 8, "x", TOLD),
        {"text": [*TEXT, "x"], "ids": [6, 7, 8], "state": State.CALL_INPUT},
    ),
    (ev.ReasoningDelta(4, 8, 3, "x"), {"text": [*TEXT, "x"]}),
    (ev.InputDelta(4, 8, "x"), {"text": [*TEXT, "x"], "state": State.CALL_INPUT}),
    (ev.TextDone(5, 8, 3, "x"), {"joined": [], "text": [], "logprobs": [], "ids": []}),
    (ev.RefusalDone(5, 8, 3, "x"), {"joined": [], "text": [], "logprobs": [], "ids": []}),
    (ev.ReasoningDone(5, 8, 3, "x"), {"joined": [], "text": [], "logprobs": [], "ids": []}),
    (ev.InputDone(5, 8, "x"), {"joined": [], "text": [], "logprobs": [], "ids": []}),
    (ev.PartDone(6, 8, 3), {}),
    (ev.ItemDone(7, 8, "completed"), {"part": -1, "phase": None, "state": State.IDLE}),
    (ev.Completed(8, USAGE), {"state": State.COMPLETED}),
    (ev.Incomplete(8, USAGE, "content_filter"), {"state": State.INCOMPLETE}),
    (ev.Errored(8, "c", "m"), {}),
    (ev.Failed(8, USAGE, "c", "m"), {"state": State.FAILED}),
    (ev.Cancelled(8, USAGE), {"state": State.CANCELLED}),
]


def forced(state: State) -> ExtendedState:
    """All of it unlike what it begins as."""
    m = ExtendedState()
    m.state, m.seq, m.item, m.part, m.phase = state, 90, 8, 3, "commentary"
    m.logprobs, m.ids, m.call_ids, m.id = LOGPROBS.copy(), IDS.copy(), {"old"}, "old"
    m.joined, m.text = JOINED.copy(), TEXT.copy()
    return m


def test_every_kind_of_event_has_a_move() -> None:
    assert {type(event) for event, _ in CHANGES} == set(MOVES) == set(ev.EVENTS)


@pytest.mark.parametrize(("event", "changes"), CHANGES)
def test_a_move_changes_what_its_event_says_and_nothing_else(
    event: ev.Event, changes: dict[str, Any]
) -> None:
    for state in State:
        m, expected = forced(state), forced(state)
        for name, value in changes.items():
            setattr(expected, name, value)
        MOVES[type(event)](m, event)
        assert m.view() == expected.view(), state


@pytest.mark.parametrize(
    "delta",
    [
        ev.TextDelta(4, 8, 3, "x"),
        ev.RefusalDelta(4, 8, 3, "x"),
        ev.ReasoningDelta(4, 8, 3, "x"),
        ev.InputDelta(4, 8, "x"),
    ],
)
def test_a_long_text_is_a_few_long_pieces(delta: ev.Event) -> None:
    m = ExtendedState()
    for count in range(1, 1000):
        MOVES[type(delta)](m, delta)
        assert m.whole_text() == "x" * count
    assert len(m.text) < 100 > len(m.joined) > 9


def test_a_copy_is_equal_and_shares_nothing() -> None:
    m = forced(State.CALL)
    other = m.copy()
    assert other.view() == m.view()
    before = m.view()
    other.text.append("x")
    other.joined.append("x")
    other.logprobs.append(B)
    other.ids.append(9)
    other.call_ids.add("new")
    assert m.view() == before


def test_the_view_is_the_whole_machine() -> None:
    machine = Response()
    assert machine.view() == ("", State.NEW, 0, -1, -1, None, "", (), (), frozenset())
    machine.receive(Accept("t", 1))
    machine.receive(CallOpened("function", "f", "id"))
    machine.receive(Reasoning("x"))
    machine.receive(Text("a", (A,), "commentary", Tokens((4,), 1)))
    machine.receive(Text("b", (B,), "commentary", Tokens((5, 6), 3)))
    assert machine.view() == (
        "t", State.MESSAGE_TEXT, machine.seq, 2, 0, "commentary", "ab", (A, B), (4, 5, 6),
        frozenset({"id"}),
    )  # fmt: skip
