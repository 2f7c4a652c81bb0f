"""Every state, found by a breadth-first search over commands from the new machine.

Nothing here knows how a state is reached: a state that is added to the machine is found by itself,
and one that no commands lead to is an error. How a machine answers is learned by asking it.
"""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from responsory.draw.alphabet import alphabet
from responsory.draw.errors import DrawError
from responsory.errors import IllegalTransition
from responsory.events import Event, ItemAdded, ItemDone
from responsory.response import Response
from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from responsory.commands import Command
    from responsory.values import ItemType, Phase


class Situation(NamedTuple):
    """The state, and what a machine in it may go by: the type and phase of the open item, and
    whether there has been an item. The search goes once through each."""

    state: State
    item: ItemType | None
    phase: Phase | None
    any_item: bool


class Answer(NamedTuple):
    """What a command gives: the events of its group and the state after them, or a refusal with
    its HTTP ``status`` and ``after`` None."""

    events: tuple[type[Event], ...]
    after: State | None
    status: int | None = None


class Reached(NamedTuple):
    """A machine in some situation, the log that led there, and its answers by command name."""

    machine: Response
    log: Sequence[Event]
    answers: Mapping[str, Answer]


def explore() -> Mapping[Situation, Reached]:
    """Every situation that commands lead to, in the order of the search.

    Raises DrawError where the examples of one name are not answered alike.
    """
    found: dict[Situation, Reached] = {}
    waiting: deque[tuple[Response, list[Event]]] = deque([(Response(), [])])
    while waiting:
        machine, log = waiting.popleft()
        situation = _situation(machine, log)
        if situation in found:
            continue
        answers: dict[str, Answer] = {}
        for name, commands in alphabet(situation.phase).items():
            for command in commands:
                after = copy(machine)
                answer, group = _ask(after, command)
                if answers.setdefault(name, answer) != answer:
                    raise DrawError(f"{name} has several answers in `{machine.state.value}`")
                if group:
                    waiting.append((after, log + group))
        found[situation] = Reached(machine, log, answers)
    return found


def _ask(machine: Response, command: Command) -> tuple[Answer, list[Event]]:
    try:
        group = machine.receive(command)
    except IllegalTransition as refusal:
        return Answer((), None, refusal.status), []
    return Answer(tuple(type(event) for event in group), machine.state), group


def _situation(machine: Response, log: Sequence[Event]) -> Situation:
    item: ItemAdded | None = None
    any_item = False
    for event in log:
        if isinstance(event, ItemAdded):
            item, any_item = event, True
        elif isinstance(event, ItemDone):
            item = None
    if item is None:
        return Situation(machine.state, None, None, any_item)
    return Situation(machine.state, item.type, item.phase, any_item)


class Row(NamedTuple):
    """One state, or the part of it that answers alike, and its answers by command name."""

    label: str
    state: State
    answers: Mapping[str, Answer]


def rows(found: Mapping[Situation, Reached]) -> list[Row]:
    """The rows of the transition table, in the order of the states.

    A state whose answers depend on whether there has been an item has two rows. Raises DrawError
    where they depend on anything else, and for a state that was not found.
    """
    table: list[Row] = []
    for state in State:
        ways = {at: reached.answers for at, reached in found.items() if at.state is state}
        if not ways:
            raise DrawError(f"no commands lead to `{state.value}`")
        first, *others = ways.values()
        if all(answers == first for answers in others):
            table.append(Row(state.value, state, first))
            continue
        for any_item in (False, True):
            alike = [answers for at, answers in ways.items() if at.any_item is any_item]
            if any(answers != alike[0] for answers in alike):
                raise DrawError(f"`{state.value}` has several answers, and no name tells which")
            label = state.value if any_item else f"{state.value}, no item yet"
            table += [Row(label, state, answers) for answers in alike[:1]]
    return table
