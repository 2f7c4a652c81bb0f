"""A socket in memory whose client reads when a test says so, and an event loop that never waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

import attrs


class _Writer(asyncio.StreamWriter):
    def __del__(self) -> None:
        """There is nothing to close."""


class Pipe(asyncio.Transport):
    """What a server writes to: every write is kept, and what the client has not read yet.

    ``writer`` is what the server holds. It is told to pause as by asyncio's own transports.
    """

    def __init__(self) -> None:
        super().__init__()
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        self._protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._high = self._low = 0
        self._paused = False
        self.reads = True
        """Whether the client takes everything at once."""
        self.writes: list[bytes] = []
        self.unsent = 0
        self.most_unsent = 0
        self.lost = False
        self.writer = _Writer(self, self._protocol, reader, loop)
        self._protocol.connection_made(self)

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        assert low is not None
        self._high, self._low = high, low

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.lost

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert data, "an empty write"
        assert not self.lost, "a write to a lost connection"
        self.writes.append(bytes(data))
        if self.reads:
            return
        self.unsent += len(data)
        self.most_unsent = max(self.most_unsent, self.unsent)
        if self.unsent > self._high and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def read(self, size: int) -> None:
        """The client takes ``size`` bytes more."""
        self.unsent = max(0, self.unsent - size)
        if self._paused and self.unsent <= self._low:
            self._paused = False
            self._protocol.resume_writing()

    def read_all(self) -> None:
        self.reads = True
        self.read(self.unsent)

    def abort(self) -> None:
        if not self.lost:
            self.lost = True
            self.unsent = 0
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


@attrs.define(eq=False)
class _Skipping(selectors.SelectSelector):
    """Instead of waiting for a timer, time goes on."""

    now: float = 0.0

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is None or timeout > 0 else timeout)
        assert ready or timeout is not None, "everything waits, and for nothing"
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class TimelessLoop(asyncio.SelectorEventLoop):
    """Its clock begins at 0, and jumps to the next timer when there is nothing else to do."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


def timeless(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` in such a loop. No wait takes time, so none is short."""
    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        runner.run(main)
