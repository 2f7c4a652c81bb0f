"""The sending side of a socket: bytes are written at once, and a full one is told.

asyncio queues whatever is written. So who writes looks at ``full`` first, and goes on when it is
``drained``. A client that takes not a single byte of what is queued for it is dropped, and so is
one that asks on and on and never reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from antiphon.transport.limits import Limits
from antiphon.transport.stalls import Stalls

HIGH = 48 * 1024
"""Unsent bytes above which a socket is full, …"""
LOW = 12 * 1024
"""… and at which it is no longer."""


class Wire:
    """Writes to one socket."""

    def __init__(
        self, writer: asyncio.StreamWriter, limits: Limits, stalled: Callable[[], None]
    ) -> None:
        """``stalled`` is called when a client is dropped because it takes nothing."""
        self._writer = writer
        self._transport = writer.transport
        self._transport.set_write_buffer_limits(high=HIGH, low=LOW)
        self._most = limits.connection_high
        self._written = 0
        self._draining: asyncio.Task[None] | None = None
        self._stalls = Stalls(limits.stall_timeout, self._taken, self._drop)
        self._stalled = stalled
        self.on_drained: Callable[[], None] = _nobody
        """Called when the socket has been full and is no longer."""

    @property
    def full(self) -> bool:
        """Whether the client has to read before anything else is written."""
        return self._draining is not None

    @property
    def closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write ``data``, or drop it where the connection has ended.

        What is written to a full socket all the same, such as answers to control frames, has a
        limit.
        """
        transport = self._transport
        # Not all transports can be written to once they are closing (asyncio's TLS one fails).
        if not data or transport.is_closing():
            return
        transport.write(data)
        self._written += len(data)
        unsent = transport.get_write_buffer_size()
        if unsent > HIGH:
            if self._draining is None:
                self._draining = asyncio.ensure_future(self._drain())
                self._stalls.begin()
            elif unsent > self._most:
                self._drop()

    async def drained(self) -> None:
        """Wait until the socket is not full, or is lost."""
        if self._draining is not None:
            await asyncio.shield(self._draining)

    def abort(self) -> None:
        """End the connection, whatever is still unwritten."""
        self._transport.abort()

    def close(self) -> None:
        """Nobody waits any more; idempotent."""
        self._stalls.end()
        if self._draining is not None:
            self._draining.cancel()

    def _taken(self) -> int:
        return self._written - self._transport.get_write_buffer_size()

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            return  # The client has gone; the reader hears of it.
        finally:
            self._draining = None
            self._stalls.end()
        self.on_drained()

    def _drop(self) -> None:
        if not self._transport.is_closing():
            self._stalled()
        self._transport.abort()


def _nobody() -> None:
    """Nobody has asked to be told."""
