"""The machine: commands in, events out.

``decide`` is pure and looks the command up in the row of the current state; ``receive`` decides and
then moves, the only way in which a machine changes. ``apply`` and ``replay`` take events that were
stored, by receiving again the commands that they show. So a live machine and a replayed one cannot
differ, a log that no machine can have written is refused, and the whole state serialises as its
log. No clock, no I/O, no ids made here: time and id come with Accept and Finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.commands import CLIENT_COMMANDS, COMMANDS, Command
from responsory.compaction import restore
from responsory.errors import IllegalTransition, LogError
from responsory.events import TextDelta
from responsory.extended import ExtendedState
from responsory.faults import fault
from responsory.grammar import cause, goes_on
from responsory.moves import MOVES, text_delta
from responsory.transitions import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.events import Event
    from responsory.states import State


class Response:
    """The life of one response. ``copy.copy`` gives an independent machine in the same state."""

    __slots__ = ("_extended", "_row")

    def __init__(self) -> None:
        self._extended = ExtendedState()
        self._row = ROWS[self._extended.state]

    @classmethod
    def replay(cls, events: Iterable[Event]) -> Response:
        """The machine that wrote this log, compacted or not. Raises LogError where none can have
        written it, an end inside a group of events included."""
        machine, whole = cls(), restore(events)
        try:
            machine.apply(whole.events)
        except LogError as error:
            raise whole.first(error) from None
        if whole.fault is not None:
            raise whole.fault
        return machine

    @property
    def state(self) -> State:
        return self._extended.state

    @property
    def seq(self) -> int:
        """The number of the next event."""
        return self._extended.seq

    @property
    def terminal(self) -> bool:
        return self._extended.state.terminal

    def receive(self, command: Command) -> list[Event]:
        """Decide, then move: the events of one atomic group, to be stored in one write.

        Raises IllegalTransition before anything changes.
        """
        # ``decide`` is written out, and nearly every move: this is run once for every token.
        try:
            handler = self._row[type(command)]
        except KeyError:
            raise self._refusal(command) from None
        extended = self._extended
        events = handler(extended, command)
        if len(events) == 1 and type(event := events[0]) is TextDelta:
            # A text that goes on: it moves to no other state.
            text_delta(extended, event)
            extended.seq += 1
        else:
            self._move(events)
        return events

    def decide(self, command: Command) -> list[Event]:
        """The events that ``command`` would give now; nothing changes.

        Raises IllegalTransition when the state does not take it.
        """
        try:
            handler = self._row[type(command)]
        except KeyError:
            raise self._refusal(command) from None
        return handler(self._extended, command)

    def apply(self, events: Iterable[Event]) -> None:
        """Take facts: the events of whole groups that another machine gave from this state on.

        Raises LogError at the first group that no command gives here; those before it are taken,
        and of that one nothing is. The error's row is that of a log which is whole up to there.
        """
        facts, at = list(events), 0
        extended = self._extended
        while at < len(facts):
            event = facts[at]
            if goes_on(extended, event):
                MOVES[type(event)](extended, event)
                extended.seq += 1
                at += 1
                continue
            try:
                group = self._due(facts, at)
            except ValueError:  # a payload that no command can carry
                group = []
            if not group or facts[at : at + len(group)] != group:
                raise fault(extended, self._row, facts[at:])
            self._move(group)
            at += len(group)

    def view(self) -> tuple[object, ...]:
        """All that the machine is, as one value to compare."""
        return self._extended.view()

    def __repr__(self) -> str:
        return f"<Response in state `{self.state.value}`, next seq {self.seq}>"

    def __copy__(self) -> Response:
        other = Response()
        other._extended = self._extended.copy()
        other._row = self._row
        return other

    def _due(self, facts: list[Event], at: int) -> list[Event]:
        """The group that must begin at ``facts[at]``; empty where none can."""
        command = cause(facts, at, self._extended.phase)
        if command is None or type(command) not in self._row:
            return []
        return self.decide(command)

    def _move(self, events: list[Event]) -> None:
        extended = self._extended
        state = extended.state
        for event in events:
            MOVES[type(event)](extended, event)
        extended.seq += len(events)
        if extended.state is not state:
            self._row = ROWS[extended.state]

    def _refusal(self, command: Command) -> Exception:
        if type(command) not in COMMANDS:
            return TypeError(f"not a command: {command!r}")
        allowed = tuple(known.__name__ for known in COMMANDS if known in self._row)
        status = 400 if type(command) in CLIENT_COMMANDS else 500
        return IllegalTransition(self.state, command, allowed, status)
