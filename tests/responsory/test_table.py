"""Every command in every state, against the table in docs/lifecycle.md."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from responsory import events as ev
from responsory.commands import (
    COMMANDS,
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
from responsory.errors import IllegalTransition
from responsory.response import Response
from responsory.states import State
from responsory.testing import check_log
from responsory.transitions import ROWS
from responsory.values import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
USAGE = Usage(3, 2)

ALPHABET: Mapping[str, Command] = {
    "Accept": Accept("t", 1),
    "Accept (background)": Accept("t", 1, background=True),
    "Start": Start(),
    "Text": Text("a"),
    "Text (other phase)": Text("a", (), "final_answer"),
    "Refusal": Refusal("a"),
    "Reasoning": Reasoning("a"),
    "CallOpened": CallOpened("function", "f"),
    "CallInput": CallInput("a"),
    "CallClosed": CallClosed(),
    "Finish (stop)": Finish("stop", USAGE),
    "Finish (length)": Finish("length", USAGE),
    "Finish (content_filter)": Finish("content_filter", USAGE),
    "Fail": Fail("server_error", "broken", USAGE),
    "Cancel": Cancel(USAGE),
}

CREATED = ev.Created(0, "t", 1, False, {})
RUNNING: list[ev.Event] = [CREATED, ev.InProgress(1)]
MESSAGE = [*RUNNING, ev.ItemAdded(2, 0, "message")]
REASONING = [*RUNNING, ev.ItemAdded(2, 0, "reasoning")]
CALL = [*RUNNING, ev.ItemAdded(2, 0, "function_call", None, "f")]
CLOSED = [*CALL, ev.InputDone(3, 0, ""), ev.ItemDone(4, 0, "completed")]

REACHED: Mapping[str, list[ev.Event]] = {
    "new": [],
    "queued": [ev.Created(0, "t", 1, True, {}), ev.Queued(1)],
    "idle, no item yet": RUNNING,
    "idle": CLOSED,
    "message.text": [
        *MESSAGE,
        ev.PartAdded(3, 0, 0, "output_text"),
        ev.TextDelta(4, 0, 0, "x"),
    ],
    "message.refusal": [
        *MESSAGE,
        ev.PartAdded(3, 0, 0, "refusal"),
        ev.RefusalDelta(4, 0, 0, "x"),
    ],
    "reasoning.text": [
        *REASONING,
        ev.PartAdded(3, 0, 0, "reasoning_text"),
        ev.ReasoningDelta(4, 0, 0, "x"),
    ],
    "call": CALL,
    "call.input": [*CALL, ev.InputDelta(3, 0, "x")],
    "completed": [*CLOSED, ev.Completed(5, USAGE)],
    "incomplete": [*CLOSED, ev.Incomplete(5, USAGE, "max_output_tokens")],
    "failed": [*CLOSED, ev.Errored(5, "c", "m"), ev.Failed(6, USAGE, "c", "m")],
    "cancelled": [*CLOSED, ev.Cancelled(5, USAGE)],
}
"""For each state, the log that leads there."""

MACHINES = {state: Response.replay(log) for state, log in REACHED.items()}


def rows_of(heading: str) -> Iterator[list[str]]:
    """The rows of the first table below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def documented() -> dict[tuple[str, str], tuple[str, str]]:
    """(state, command) -> (events, next state), with `every other` written out."""
    cells: dict[tuple[str, str], tuple[str, str]] = {}
    for state, command, events, after in rows_of("Table"):
        named = [command] if command != "every other" else list(ALPHABET)
        for name in named:
            if command == "every other" and (state, name) in cells:
                continue
            assert (state, name) not in cells, f"documented twice: {name} in {state}"
            cells[state, name] = (events, after)
    return cells


TABLE = documented()


def check(state: str, name: str) -> None:
    """One cell of the page against the machine."""
    machine = copy(MACHINES[state])
    before = machine.view()
    events, after = TABLE[state, name]
    if events == "✗":
        with pytest.raises(IllegalTransition) as caught:
            machine.receive(ALPHABET[name])
        assert caught.value.state is machine.state
        assert caught.value.command is ALPHABET[name]
        assert machine.view() == before
        return
    decided = machine.decide(ALPHABET[name])
    assert machine.view() == before, "decide changed the machine"
    assert machine.receive(ALPHABET[name]) == decided
    assert " ".join(type(event).__name__ for event in decided) == events.replace("nothing", "")
    assert machine.state.value == after.split(",")[0]
    assert [event.seq for event in decided] == [
        len(REACHED[state]) + offset for offset in range(len(decided))
    ]


def test_the_page_is_total() -> None:
    assert set(TABLE) == {(state, name) for state in REACHED for name in ALPHABET}
    assert {type(command) for command in ALPHABET.values()} == set(COMMANDS)
    assert {state.split(",")[0] for state in REACHED} == {state.value for state in State}


@pytest.mark.parametrize("state", REACHED)
def test_every_command(state: str) -> None:
    assert MACHINES[state].state.value == state.split(",")[0]
    for name in ALPHABET:
        check(state, name)


@pytest.mark.parametrize("state", REACHED)
def test_every_group_can_be_replayed(state: str) -> None:
    for name, command in ALPHABET.items():
        if TABLE[state, name][0] == "✗":
            continue
        machine = copy(MACHINES[state])
        log = [*REACHED[state], *machine.receive(command)]
        check_log(log)
        assert Response.replay(log).view() == machine.view()


@pytest.mark.parametrize("state", [state for state in State if ROWS[state]])
def test_a_redirected_cell_is_caught(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each legal cell in turn: removed, made silent, or given the handler of another cell."""
    row = ROWS[state]
    handlers = {handler.__name__: handler for other in ROWS.values() for handler in other.values()}
    for command, real in list(row.items()):
        cells = [
            (name, text)
            for name in REACHED
            if name.split(",")[0] == state.value
            for text, symbol in ALPHABET.items()
            if type(symbol) is command
        ]
        others: list[Any] = [None, lambda machine, command: [ev.Queued(machine.seq)]]
        if real.__name__ != "cancel_too_late":
            others.append(lambda machine, command: [])
        others += [
            other
            for other in handlers.values()
            if other is not real and other.__annotations__["command"] == command.__name__
        ]
        for other in others:
            with monkeypatch.context() as patch:
                if other is None:
                    patch.delitem(row, command)
                else:
                    patch.setitem(row, command, other)
                assert not all(passes(*cell) for cell in cells), (state, command, other)


def passes(state: str, name: str) -> bool:
    try:
        check(state, name)
    except (Exception, pytest.fail.Exception):
        return False
    return True


def test_the_page_names_status_item_and_part() -> None:
    rows = {name: tuple(rest) for name, *rest in rows_of("States")}
    assert rows == {
        state.value: (state.status or "", state.item or "", state.part or "") for state in State
    }


def test_a_refusal_says_what_is_allowed_and_whose_fault_it_is() -> None:
    machine = Response.replay(REACHED["queued"])
    with pytest.raises(IllegalTransition) as ours:
        machine.receive(Text("a"))
    assert str(ours.value) == (
        "Text is not allowed in state `queued`; allowed: Start, Fail, Cancel"
    )
    assert ours.value.allowed == ("Start", "Fail", "Cancel")
    assert ours.value.status == 500
    with pytest.raises(IllegalTransition) as theirs:
        Response().receive(Cancel(USAGE))
    assert theirs.value.status == 400
    with pytest.raises(IllegalTransition, match="allowed: Cancel"):
        Response.replay(REACHED["failed"]).receive(Start())


def test_something_that_is_no_command_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not a command"):
        Response().receive("Accept")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="reason"):
        Finish("eos", USAGE)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="kind"):
        CallOpened("builtin", "f")  # type: ignore[arg-type]  # the point of the test


NOTHING = [Text(""), Refusal(""), Reasoning(""), Text("", (), "commentary")]


@pytest.mark.parametrize("state", [name for name in REACHED if name not in ("new", "queued")])
def test_a_command_that_carries_nothing_gives_nothing(state: str) -> None:
    machine = Response.replay(REACHED[state])
    if machine.terminal:
        return
    before = machine.view()
    for command in NOTHING + ([CallInput("")] if machine.state.item == "call" else []):
        assert machine.receive(command) == []
    assert machine.view() == before


def test_status_of_closed_items() -> None:
    """`completed` after CallClosed, Finish(stop) and the opening of another item, else cut."""
    whole = ("CallClosed", "Finish (stop)", "Text", "Text (other phase)", "Refusal", "Reasoning")
    seen = set()
    for state, events in REACHED.items():
        for name, command in ALPHABET.items():
            if TABLE[state, name][0] == "✗":
                continue
            for event in Response.replay(events).receive(command):
                if isinstance(event, ev.ItemDone):
                    expected = "completed" if name in (*whole, "CallOpened") else "incomplete"
                    assert event.status == expected, (state, name)
                    seen.add(event.status)
    assert seen == {"completed", "incomplete"}
