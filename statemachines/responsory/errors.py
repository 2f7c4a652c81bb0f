"""The errors of this library.

::

    Exception
    ├── IllegalTransition    a command that the state does not take; nothing has changed
    ├── TableError           a cell of the transition table is declared twice, or missing
    └── LogError             events or rows that no machine can have written
        └── CursorExpired    the frames after a cursor can no longer be given
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responsory.commands import Command
    from responsory.states import State


class IllegalTransition(Exception):
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


class TableError(Exception):
    """The transition table is not total, or says two things about one cell."""


class LogError(Exception):
    """Events out of order, a row of an unknown kind, or a log that lacks what is asked of it."""


class CursorExpired(LogError):
    """The log was compacted: the frames after the cursor are no longer all there."""
