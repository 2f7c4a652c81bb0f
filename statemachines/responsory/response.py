"""The machine: commands in, events out.

``decide`` is pure and looks the command up in the row of the current state; ``apply`` is the only
mutator; ``receive`` is one after the other. ``replay`` applies a log. So a live machine and a
replayed one cannot differ, and the whole state serialises as its log. No clock, no I/O, no ids
made here: time and id come with Accept and Finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.commands import CLIENT_COMMANDS, COMMANDS, Command
from responsory.errors import IllegalTransition, LogError
from responsory.moves import MOVES
from responsory.states import State
from responsory.transitions import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.events import Event
    from responsory.values import Logprob, Phase


class Response:
    """The life of one response.

    ``seq``: number of the next event. ``items``: items opened so far, the open one is the last.
    ``parts``: likewise within the open item. ``phase``: of the open message. ``text`` and
    ``logprobs``: what the open part or call has got so far.
    """

    __slots__ = ("_decide", "_moves", "items", "logprobs", "parts", "phase", "seq", "state", "text")

    def __init__(self) -> None:
        self.state = State.NEW
        self.seq = 0
        self.items = 0
        self.parts = 0
        self.phase: Phase | None = None
        self.text: list[str] = []
        self.logprobs: list[Logprob] = []
        self._decide = ROWS[State.NEW]
        self._moves = MOVES[State.NEW]

    @classmethod
    def replay(cls, events: Iterable[Event]) -> Response:
        """The machine after these events. Raises LogError where they cannot follow each other."""
        machine = cls()
        for event in events:
            machine.apply(event)
        return machine

    @property
    def terminal(self) -> bool:
        return self.state.terminal

    def receive(self, command: Command) -> list[Event]:
        """Decide, then apply: the events of one atomic group, to be stored in one write.

        Raises IllegalTransition before anything changes.
        """
        events = self.decide(command)
        for event in events:
            self.apply(event)
        return events

    def decide(self, command: Command) -> list[Event]:
        """The events that ``command`` would give now; nothing changes.

        Raises IllegalTransition when the state does not take it.
        """
        try:
            handler = self._decide[type(command)]
        except KeyError:
            raise self._refusal(command) from None
        return handler(self, command)

    def apply(self, event: Event) -> None:
        """Take a fact. Raises LogError when it cannot follow what was applied before.

        Sequence numbers may jump (a compacted log has gaps); they never repeat.
        """
        move = self._moves.get(type(event))
        if move is None or event.seq < self.seq:
            raise LogError(
                f"{type(event).__name__} with seq {event.seq} cannot follow in state "
                f"`{self.state.value}` with next seq {self.seq}"
            )
        state = move(self, event)
        self.seq = event.seq + 1
        if state is not self.state:
            self.state = state
            self._decide = ROWS[state]
            self._moves = MOVES[state]

    def view(self) -> tuple[object, ...]:
        """All that the machine is, as one value to compare."""
        text, logprobs = "".join(self.text), tuple(self.logprobs)
        return (self.state, self.seq, self.items, self.parts, self.phase, text, logprobs)

    def _refusal(self, command: Command) -> Exception:
        if type(command) not in COMMANDS:
            return TypeError(f"not a command: {command!r}")
        allowed = tuple(known.__name__ for known in COMMANDS if known in self._decide)
        status = 400 if type(command) in CLIENT_COMMANDS else 500
        return IllegalTransition(self.state, command, allowed, status)
