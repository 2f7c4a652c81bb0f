"""A total transition table: every (state, command) cell is declared once, or the import fails.

``on`` registers a handler for one command in some states; its type ties the command's class to the
handler's parameter, so a handler that takes another command is rejected by the type checker.
``refuse`` declares cells that are illegal. ``rows`` gives one dict per state, command class →
handler, with the legal cells only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Generic, TypeAlias, TypeVar

from responsory.commands import COMMANDS, Command
from responsory.errors import TableError
from responsory.events import Event
from responsory.states import State

M = TypeVar("M")
C = TypeVar("C", bound=Command)

Handler: TypeAlias = Callable[[M, C], list[Event]]
Row: TypeAlias = dict[type[Command], Callable[[M, Any], list[Event]]]


class Table(Generic[M]):
    """The cells of machine class ``M``."""

    def __init__(self) -> None:
        self._cells: dict[tuple[State, type[Command]], Callable[[M, Any], list[Event]] | None] = {}

    def on(self, states: Set[State], command: type[C]) -> Callable[[Handler[M, C]], Handler[M, C]]:
        """Register the decorated handler. Raises TableError where a cell is already declared."""

        def register(handler: Handler[M, C]) -> Handler[M, C]:
            self._declare(states, command, handler)
            return handler

        return register

    def refuse(self, states: Set[State], *commands: type[Command]) -> None:
        """Declare these cells illegal. Raises TableError where a cell is already declared."""
        for command in commands:
            self._declare(states, command, None)

    def _declare(
        self,
        states: Iterable[State],
        command: type[Command],
        handler: Callable[[M, Any], list[Event]] | None,
    ) -> None:
        for state in states:
            cell = (state, command)
            if cell in self._cells:
                raise TableError(f"declared twice: {command.__name__} in `{state.value}`")
            self._cells[cell] = handler

    def rows(self) -> Mapping[State, Row[M]]:
        """The finished table. Raises TableError that lists every undeclared cell."""
        missing = [
            f"{command.__name__} in `{state.value}`"
            for state in State
            for command in COMMANDS
            if (state, command) not in self._cells
        ]
        if missing:
            raise TableError(f"not declared: {', '.join(missing)}")
        rows: dict[State, Row[M]] = {state: {} for state in State}
        for (state, command), handler in self._cells.items():
            if handler is not None:
                rows[state][command] = handler
        return rows
