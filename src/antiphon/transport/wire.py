"""The sending side of a socket: bytes are written at once, and a full one is told.

asyncio queues whatever is written. So who writes looks at ``full`` first, and goes on when ``drained``
says so. One that stays full while its client takes not a single byte is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from antiphon.transport.limits import Limits

HIGH = 64 * 1024
"""Unsent bytes above which a socket is full, …"""
LOW = 16 * 1024
"""… and at which it is no longer."""


class Wire:
    """Writes to one socket. ``on_drained`` is called when it has been full and is no longer."""

    def __init__(self, writer: asyncio.StreamWriter, limits: Limits) -> None:
        self._writer = writer
        self._transport = writer.transport
        self._transport.set_write_buffer_limits(high=HIGH, low=LOW)
        self._limits = limits
        self._written = 0
        self._draining: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.on_drained: Callable[[], None] = _nobody
        self.on_stalled: Callable[[], None] = _nobody
        """Called before a client that takes nothing is dropped."""

    @property
    def full(self) -> bool:
        """Whether the client has to read before anything else is written."""
        return self._draining is not None

    @property
    def unsent(self) -> int:
        """Bytes that are written and not sent."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Write ``data``, or drop it where the connection has ended.

        What is written to a full socket all the same (answers to control frames) is bounded: a
        client that only asks and never reads is dropped.
        """
        transport = self._transport
        if transport.is_closing():
            return
        transport.write(data)
        self._written += len(data)
        if transport.get_write_buffer_size() > HIGH:
            self._wait()

    async def drained(self) -> None:
        """Wait until the socket is not full. Raises ``OSError`` when it is lost."""
        await self._writer.drain()

    def close(self) -> None:
        """Nobody waits any more."""
        if self._draining is not None:
            self._draining.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _wait(self) -> None:
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())
            self._look_later()
        elif self.unsent > self._limits.connection_high:
            self._drop()

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            return  # The client has gone; the reader hears of it.
        finally:
            self._draining = None
            if self._watch is not None:
                self._watch.cancel()
        self.on_drained()

    def _look_later(self) -> None:
        loop, taken = asyncio.get_running_loop(), self._written - self.unsent
        self._watch = loop.call_later(self._limits.stall_timeout, self._look, taken)

    def _look(self, taken_before: int) -> None:
        if self._written - self.unsent == taken_before:
            self._drop()
        else:
            self._look_later()

    def _drop(self) -> None:
        self.on_stalled()
        self._transport.abort()


def _nobody() -> None:
    """Nobody has asked to be told."""
