"""The errors of this library.

::

    ResponsoryError
    ├── IllegalTransition    a command that the state does not take; nothing has changed
    ├── TableError           a table that is checked at import is not whole, or says a thing twice
    └── LogError             events or rows that no machine can have written
        └── CursorExpired    the frames after a cursor can no longer be given

A value that no field can hold is a ValueError, and a thing of another type a TypeError, as ever.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responsory.commands import Command
    from responsory.states import State


class ResponsoryError(Exception):
    """The base of the errors of this library."""


class IllegalTransition(ResponsoryError):
    """``command`` is not taken in ``state``. It was raised before anything changed.

    ``allowed`` are the names of the commands that are taken; ``status`` is a hint for an HTTP
    server: 400 where the client asked for it (Accept, Cancel), 500 where it is the server's bug.
    """

    def __init__(
        self, state: State, command: Command, allowed: tuple[str, ...], status: int
    ) -> None:
        choice = ", ".join(allowed) or "nothing"
        super().__init__(
            f"{type(command).__name__} is not allowed in state `{state.value}`; allowed: {choice}"
        )
        self.state = state
        self.command = command
        self.allowed = allowed
        self.status = status

    def __reduce__(self) -> tuple[type[IllegalTransition], tuple[object, ...]]:
        return type(self), (self.state, self.command, self.allowed, self.status)


class TableError(ResponsoryError):
    """A cell of the transition table, or a step of the upcasts, is missing or declared twice."""


FIRST_ROW = 2
"""The row of a log's first event."""


class LogError(ResponsoryError):
    """Events out of order, a row of an unknown kind, or a log that lacks what is asked of it.

    ``reason`` says what is wrong, and ``row`` where, if a log was read or replayed. Rows are
    counted as an editor counts the lines of a stored log, from 1: row 1 is the header, and
    ``log[i]`` is row ``i + FIRST_ROW``. Reading names the first row that is none, or whose number
    is not due; replay names the first row at which no log can go on after the rows before it.
    Where a log ends too early, ``row`` is the one that is missing, after the last.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row

    def __str__(self) -> str:
        return self.reason if self.row is None else f"row {self.row}: {self.reason}"


class CursorExpired(LogError):
    """The log was compacted: the frames after the cursor are no longer all there."""


def shown(value: object) -> str:
    """A value as a message shows it: its start and its end, however long or deep it is."""
    try:
        return reprlib.repr(value)
    except ValueError:  # it has an int of more digits than Python writes out
        return f"a huge {type(value).__name__}"
