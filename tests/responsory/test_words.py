"""All words of commands up to a length, breadth first; and logs that no machine can have made."""

from __future__ import annotations

import copy

import pytest

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
from responsory.errors import IllegalTransition, LogError
from responsory.response import Response
from responsory.testing import a_response, check_log
from responsory.values import Usage

USAGE = Usage(1, 1)
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
LENGTH = 7


def twin(machine: Response) -> Response:
    """A copy that shares no list with the original."""
    other = copy.copy(machine)
    other.text, other.logprobs = list(machine.text), list(machine.logprobs)
    return other


def test_all_words() -> None:
    """Every legal word up to the length leaves a log that holds all invariants, and a machine that
    equals its replay. Words that are refused, or that give nothing, are not continued."""
    frontier: list[tuple[Response, list[ev.Event]]] = [(Response(), [])]
    words = refused = 0
    for _ in range(LENGTH):
        longer = []
        for machine, log in frontier:
            for command in ALPHABET:
                try:
                    group = machine.decide(command)
                except IllegalTransition:
                    refused += 1
                    continue
                if not group:
                    assert machine.terminal
                    assert isinstance(command, Cancel)
                    continue
                after = twin(machine)
                for event in group:
                    after.apply(event)
                grown = [*log, *group]
                check_log(grown)
                assert after.terminal == (type(grown[-1]) in ev.ENDINGS)
                words += 1
                longer.append((after, grown))
        frontier = longer
    assert words > 50_000
    assert refused > 50_000
    for machine, log in frontier[::7]:
        assert Response.replay(log).view() == machine.view()


@pytest.mark.parametrize(
    "events",
    [
        [ev.InProgress(0)],
        [ev.Created(0, "t", 1, False, {}), ev.Created(1, "t", 1, False, {})],
        [ev.Created(0, "t", 1, False, {}), ev.InProgress(0)],
        [ev.Created(0, "t", 1, True, {}), ev.ItemAdded(1, 0, "message")],
        [*a_response().log, ev.TextDelta(2, 0, 0, "a")],
        [*a_response().log, ev.ItemAdded(2, 0, "message"), ev.InputDelta(3, 0, "a")],
        [*a_response().log, ev.ItemAdded(2, 0, "message"), ev.Completed(3, USAGE)],
        [*a_response().text("a").log, ev.ReasoningDelta(5, 0, 0, "a")],
        [*a_response().finish().log, ev.Completed(8, USAGE)],
    ],
)
def test_events_that_cannot_follow_are_refused(events: list[ev.Event]) -> None:
    before = Response.replay(events[:-1])
    view = before.view()
    with pytest.raises(LogError, match="cannot follow"):
        before.apply(events[-1])
    assert before.view() == view
