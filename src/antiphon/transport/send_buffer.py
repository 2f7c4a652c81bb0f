"""What one response has yet to send, and who waits for it.

Data comes in two ways. Plain ASGI messages are pushed: the handler waits while the queue is above
its high-water mark. Frames of an event stream are offered (see ``sink``): above the mark nothing is
taken, and who offers hears when there is room again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from antiphon.transport.counted import Counted
from antiphon.transport.limits import Limits
from antiphon.transport.stalls import Stalls

Chunk: TypeAlias = bytes | memoryview


class Load:
    """What is queued on one connection, for all its streams."""

    __slots__ = ("counted", "high", "queued")

    def __init__(self, limits: Limits, counted: Counted) -> None:
        self.counted = counted
        self.queued = 0
        """Bytes in the buffers of its streams."""
        self.high = limits.connection_high


class SendBuffer:
    """Bytes of one response between its handler and the socket."""

    __slots__ = ("_chunks", "_done", "_ended", "_high", "_load", "_low", "_on_closed", "_on_ready",
                 "_room", "_stalls", "closed", "detached", "sent_end", "size", "taken",
                 "trailers")  # fmt: skip

    def __init__(self, limits: Limits, load: Load, stalled: Callable[[], None]) -> None:
        """``stalled`` is called when the client takes nothing for too long."""
        self._chunks: deque[Chunk] = deque()
        self._high = limits.stream_high
        self._low = limits.stream_low
        self._load = load
        self._ended = False
        self._room: asyncio.Future[None] | None = None
        self._done: asyncio.Future[None] | None = None
        self._on_ready: Callable[[], None] | None = None
        self._on_closed: Callable[[], None] | None = None
        self._stalls = Stalls(limits.stall_timeout, lambda: self.taken, stalled)
        self.closed = False
        """Whether the stream is over; nothing is taken any more."""
        self.size = 0
        self.taken = 0
        self.detached = False
        """An offer was refused, and nobody was told yet that there is room."""
        self.sent_end = False
        """Whether the end has been written."""
        self.trailers: list[tuple[bytes, bytes]] | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is left but to end the stream."""
        return self._ended and not self.size

    @property
    def room(self) -> int:
        """Bytes up to the nearer of both marks."""
        load = self._load
        return max(0, min(self._high - self.size, load.high - load.queued))

    def offer(self, data: bytes) -> bool:
        """Queue ``data``; False, and nothing is queued, above the high-water mark of the stream or
        of its connection.

        An empty queue takes anything: a frame may be longer than the mark, and a stream that is
        read goes on beside others that fill the connection. After the end, what is offered is
        dropped.
        """
        if self._ended or not data:
            return True
        size, load = self.size + len(data), self._load
        if not self.size or (size <= self._high and load.queued <= load.high):
            self._chunks.append(data)
            self.size = size
            load.queued += len(data)
            return True
        self.detached = True
        load.counted.detached += 1
        return False

    async def push(self, data: bytes) -> None:
        """Queue ``data``; above either mark, wait until the queue is down to the low one.

        On a closed stream ``data`` is dropped, and the caller gives way: a handler that never
        waits for anything else could not be cancelled.
        """
        if self.closed or not data:
            await asyncio.sleep(0)
            return
        self._chunks.append(data)
        self.size += len(data)
        self._load.queued += len(data)
        if self.size >= self._high or self._load.queued > self._load.high:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)

    def take(self, most: int) -> list[Chunk]:
        """Take up to ``most`` bytes, of which there are some.

        What was queued at once is only cut if it is longer than that.
        """
        chunks = self._chunks
        if self.size <= most:
            taken, size = list(chunks), self.size
            chunks.clear()
        elif len(chunks[0]) > most:
            first = memoryview(chunks[0])  # The rest of a long body is not copied again and again.
            taken, size = [first[:most]], most
            chunks[0] = first[most:]
        else:
            taken, size = [], 0
            while size + len(chunks[0]) <= most:
                size += len(chunks[0])
                taken.append(chunks.popleft())
        self.size -= size
        self.taken += size
        self._load.queued -= size
        if self.size <= self._low:
            if self._room is not None:
                _resolve(self._room)
                self._room = None
            if self.detached:
                # What is taken now is written first.
                asyncio.get_running_loop().call_soon(self._go_on)
        return taken

    def _go_on(self) -> None:
        """There is room again."""
        if self.detached and not self.closed:
            self.detached = False
            if self._on_ready is not None:
                self._on_ready()

    def blocked(self) -> None:
        """The client has to do something before more can be sent."""
        self._stalls.begin()

    def moved(self) -> None:
        """It has done it: nothing is left that waits."""
        self._stalls.end()

    def end(self) -> None:
        """No more data will come."""
        self._ended = True

    async def finished(self) -> None:
        """Wait until the end of the stream is written, or the stream is gone."""
        if self.closed:
            return
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._done)

    def on_ready(self, callback: Callable[[], None]) -> None:
        """``callback`` is called when there is room again after an offer was refused."""
        self._on_ready = callback

    def on_closed(self, callback: Callable[[], None]) -> None:
        """``callback`` is called once, when the stream is over before its end was written."""
        if self.closed and not self.sent_end:
            callback()
        else:
            self._on_closed = callback

    def close(self) -> None:
        """The stream is over: drop what is queued and let every waiter go on; idempotent."""
        if self.closed:
            return
        self.closed = self._ended = True
        self._load.queued -= self.size
        self._chunks.clear()
        self.size = 0
        self._stalls.end()
        if self._room is not None:
            _resolve(self._room)
        if self._done is not None:
            _resolve(self._done)
        callback, self._on_closed, self._on_ready = self._on_closed, None, None
        if callback is not None and not self.sent_end:
            callback()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
