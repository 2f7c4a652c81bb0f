"""The commands of an engine in a process of its own, and the answer that it still turns."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.engines.codec.commands import decode_abort, decode_submit
from antiphon.engines.codec.envelope import CodecError, Kind
from antiphon.engines.torch.inbox import Abort, AbortAll, Command, Drain, Inbox, Submit


class RemoteInbox(Inbox):
    """An inbox that is filled from messages. ``pong`` is called on the thread that takes."""

    def __init__(self, pong: Callable[[], None]) -> None:
        super().__init__()
        self._pong = pong
        self._asked = False

    def receive(self, kind: Kind, body: memoryview) -> None:
        """A message that has come. Raises ``CodecError`` if it is no command."""
        match kind:
            case Kind.SUBMIT:
                self.put(Submit(decode_submit(body)))
            case Kind.ABORT:
                self.put(Abort(decode_abort(body)))
            case Kind.DRAIN:
                self.put(Drain())
            case Kind.ABORT_ALL:
                self.put(AbortAll())
            case Kind.PING:
                self._asked = True
                self.put(Abort(()))  # of nothing: it wakes a loop that waits
            case _:
                raise CodecError(f"{kind.name} is no command")

    def take(self, *, wait: bool) -> list[Command]:
        """As of any inbox. A loop that comes here turns, which is all that a ping asks."""
        commands = super().take(wait=wait)
        if self._asked:
            self._asked = False
            self._pong()
        return commands
