"""The clock an engine of the event loop runs by: time and waiting, so that tests need neither."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Monotonic time, and waiting for an event or a moment."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds."""
        ...

    async def wait(self, event: anyio.Event, until_ns: int | None) -> None:
        """Return once ``event`` is set or the clock has reached ``until_ns`` (None: never)."""
        ...


class MonotonicClock:
    """The system's monotonic clock."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    async def wait(self, event: anyio.Event, until_ns: int | None) -> None:
        seconds = None if until_ns is None else max(0, until_ns - self.now_ns()) / 1e9
        with anyio.move_on_after(seconds):
            await event.wait()
