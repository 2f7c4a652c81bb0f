"""Commands from the event loop to the engine's thread."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

import attrs

from antiphon.engines.port import EngineRequest, GrammarSpec

if TYPE_CHECKING:
    from antiphon.engines.torch.grammar.compiler import Compiled


@attrs.define
class Submit:
    """Take a request."""

    request: EngineRequest


@attrs.define
class Abort:
    """End these keys."""

    keys: tuple[int, ...]


@attrs.define
class Drain:
    """Refuse new requests and leave when none is open."""


@attrs.define
class AbortAll:
    """End every open key."""


@attrs.define
class Formed:
    """A form that requests wait for is compiled, or refused. The engine's own news."""

    form: GrammarSpec
    made: Compiled


Command: TypeAlias = Submit | Abort | Drain | AbortAll | Formed


class Inbox:
    """Commands in order of arrival."""

    def __init__(self) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()

    def put(self, command: Command) -> None:
        """Append a command; never blocks."""
        self._commands.put(command)

    def take(self, *, wait: bool) -> list[Command]:
        """All commands that have arrived; with ``wait`` at least one."""
        commands = [self._commands.get()] if wait else []
        while True:
            try:
                commands.append(self._commands.get_nowait())
            except Empty:
                return commands
