"""The way of an event stream's frames: offered at once, queued, written once per engine step.

No task wakes for a frame. Whoever has frames offers them to the stream's ``FrameSink``, which
queues them and marks its connection; then ``StepFlush.run`` lets every marked connection write what
it has in one piece. A queue has a high-water mark: above it nothing is taken, the sink is
*detached*, and whoever offers keeps its frames until the sink says that it is ready again. So what
a slow reader holds is bounded, and neither the engine nor the other readers wait for it.

ASGI applications find the sink as ``scope["extensions"][FRAMES]``. All calls are made on the event
loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

FRAMES = "antiphon.frames"
"""The name of the ASGI extension."""

log = logging.getLogger("antiphon.transport")

Headers = Iterable[tuple[bytes, bytes]]


class FrameSink(Protocol):
    """The body of one response, as a queue of whole frames (one or more complete events each).

    Frames are never merged or reordered, and what was offered at once is written at once, but where
    a flow-control window or the largest frame size of HTTP/2 is smaller than that.
    """

    @property
    def queued(self) -> int:
        """Bytes that the connection has not written yet."""
        ...

    @property
    def room(self) -> int:
        """Bytes that can be offered now without going above a mark; 0 where it is above one."""
        ...

    @property
    def detached(self) -> bool:
        """Whether the last offer was refused and the sink has not been ready since."""
        ...

    @property
    def protocol(self) -> str:
        """``h2`` or ``h1``."""
        ...

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head. From here on the body can no longer be sent as ASGI messages."""
        ...

    def offer(self, data: bytes) -> bool:
        """Queue ``data``; False, and nothing is queued, where there is no room.

        An empty queue has room for anything. After the end of the stream, or of its connection,
        what is offered is dropped. Raises RuntimeError before ``start``.
        """
        ...

    def end(self) -> None:
        """The body ends after what is queued. Raises RuntimeError before ``start``."""
        ...

    def reset(self) -> None:
        """Break off: drop what is queued, and tell the client that the body is not complete."""
        ...

    def on_ready(self, callback: Callable[[], None]) -> None:
        """``callback`` is called when a detached sink has room again."""
        ...

    def on_closed(self, callback: Callable[[], None]) -> None:
        """``callback`` is called once, when the stream ends before its body has."""
        ...

    async def finished(self) -> None:
        """Wait until the end of the body has been written, or can no longer be."""
        ...


class Flushable(Protocol):
    """A connection that has something to write."""

    def flush(self) -> None: ...


class StepFlush:
    """The connections of one server that have something to write.

    They are written to in the loop's next turn, or when ``run`` is called before: an engine step
    does that when all its frames have been offered.
    """

    def __init__(self) -> None:
        self._marked: dict[Flushable, None] = {}

    def mark(self, connection: Flushable) -> None:
        """``connection`` has something to write."""
        if not self._marked:
            asyncio.get_running_loop().call_soon(self.run)
        self._marked[connection] = None

    def run(self) -> None:
        """Let every marked connection write, once."""
        if not self._marked:
            return
        marked, self._marked = self._marked, {}
        for connection in marked:
            try:
                connection.flush()
            except Exception:
                log.exception("writing to a connection failed")
