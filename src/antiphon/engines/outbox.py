"""Frames from an engine, in a thread or not, to one consumer on the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from antiphon.engines.port import StepFrame

BACKLOG_WARNING = 1_000
"""Unread frames from which on the consumer is reported as too slow."""

log = logging.getLogger(__name__)


class Outbox:
    """An unbounded queue of frames that has at most one wake-up pending, however many arrive.

    Must be made on the event loop's thread. ``put`` may be called from any one thread at a time,
    everything else from the event loop's thread only.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames: deque[StepFrame] = deque()
        self._ready = asyncio.Event()
        self._wake_pending = False
        self._closed = False
        self._backlog_reported = False

    def add(self, frame: StepFrame) -> None:
        """Append a frame on the event loop's own thread."""
        self._append(frame)
        self._ready.set()

    def put(self, frame: StepFrame) -> None:
        """Append a frame and see to it that the consumer wakes up; never blocks."""
        self._append(frame)
        if not self._wake_pending:
            self._wake_pending = True
            with suppress(RuntimeError):  # the event loop is closed: nobody is left to read
                self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End the frames after those already put."""
        self._closed = True
        self._ready.set()

    async def frames(self) -> AsyncIterator[StepFrame]:
        """All frames in order, until the outbox is closed and empty."""
        while True:
            self._ready.clear()
            while self._frames:
                yield self._frames.popleft()
            if self._closed:
                return
            await self._ready.wait()

    def _append(self, frame: StepFrame) -> None:
        self._frames.append(frame)
        if len(self._frames) > BACKLOG_WARNING and not self._backlog_reported:
            self._backlog_reported = True
            log.warning("%d frames wait for the event loop", len(self._frames))

    def _wake(self) -> None:
        # Cleared before the consumer looks: a frame put from now on asks for another wake-up.
        self._wake_pending = False
        self._ready.set()
