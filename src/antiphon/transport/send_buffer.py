"""What an HTTP/2 stream has yet to send, and who waits for it."""

from __future__ import annotations

import asyncio

from antiphon.transport.settings import STREAM_HIGH_WATER, STREAM_LOW_WATER


class SendBuffer:
    """Bytes of one response between its handler and the flow-control windows."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._done = asyncio.Event()
        self.sent_end = False
        """Whether the end of the stream has been framed."""
        self.trailers: list[tuple[bytes, bytes]] | None = None

    def __len__(self) -> int:
        return len(self._data)

    @property
    def complete(self) -> bool:
        """Whether nothing is left but to end the stream."""
        return self._ended and not self._data

    async def push(self, data: bytes) -> None:
        """Queue ``data``; above the high-water mark, wait until the queue is down to the low.

        On a closed stream ``data`` is dropped, and the caller gives way: a handler that never
        waits for anything else could not be cancelled.
        """
        if self._done.is_set():
            await asyncio.sleep(0)
            return
        self._data += data
        if len(self._data) >= STREAM_HIGH_WATER:
            self._has_room.clear()
        await self._has_room.wait()

    def pop(self, most: int) -> bytes:
        """Take up to ``most`` bytes."""
        data = bytes(self._data[:most])
        del self._data[:most]
        if len(self._data) <= STREAM_LOW_WATER:
            self._has_room.set()
        return data

    def end(self) -> None:
        """No more data will come."""
        self._ended = True

    async def finished(self) -> None:
        """Wait until the end of the stream is on its way, or the stream is gone."""
        await self._done.wait()

    def close(self) -> None:
        """The stream is over: drop what is queued and let every waiter go on."""
        self._data.clear()
        self._has_room.set()
        self._done.set()
