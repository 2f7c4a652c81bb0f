"""All words of commands up to a length, breadth first."""

from __future__ import annotations

import copy

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
from responsory.errors import IllegalTransition
from responsory.response import Response
from responsory.testing import check_log
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
                after = copy.copy(machine)
                assert after.receive(command) == group
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
