"""One reader of a run's frames.

Attached to a frame sink, and level with the run, it offers every frame as it comes and keeps none.
Else the frames wait here: while there is no sink yet, while the sink has no room, or for whoever
iterates, which gets all that waits in one piece. Frames are rendered once, are never split and
never merged. What waits has a limit, and a reader that is further behind ends its run.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType

import anyio

from antiphon.runs.run import Run
from antiphon.transport.sink import FrameSink

PING = b": ping\n\n"
"""An SSE comment: it keeps connections open and is no event."""
BACKLOG = 8 * 1024 * 1024
"""Bytes of frames that wait for a reader that is behind."""
BATCH = 16 * 1024
"""Bytes offered at once to a reader that catches up."""


class Subscription:
    """Bytes of one stream, whole frames at a time, a ping after ``ping_s`` silent seconds.

    ``leave`` is called exactly once, when the reader has gone or has read everything.
    """

    def __init__(
        self, run: Run, *, ping_s: float, leave: Callable[[], None], backlog: int = BACKLOG
    ) -> None:
        self._run = run
        self._ping_s = ping_s if ping_s > 0 else None
        self._leave: Callable[[], None] | None = leave
        self._most = backlog
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._sink: FrameSink | None = None
        self._level: FrameSink | None = None
        """The sink while nothing waits: frames are offered as they come."""
        self._news: anyio.Event | None = None  # made only when somebody waits
        self._last_s = 0.0
        self._ping: asyncio.TimerHandle | None = None
        run.read_by(self)

    def take(self, frames: list[bytes]) -> None:
        """Frames that have just been made. The run calls this, once per engine step."""
        if self._level is not None:
            self._last_s = time.monotonic()
            if self._level.offer(frames[0] if len(frames) == 1 else b"".join(frames)):
                return
            self._level = None
        elif self._leave is None:
            return  # It has gone.
        self._waiting += frames
        self._size += sum(map(len, frames))
        if self._size > self._most:
            self._run.overrun = True
        self._tell()

    def end(self) -> None:
        """The run has ended: nothing more is taken. The run calls this, after the last frames."""
        if self._level is not None:
            self._level.end()
        self._tell()

    def attach(self, sink: FrameSink) -> None:
        """Offer to ``sink`` what waits and what comes, and end it when the run has ended."""
        self._sink = sink
        sink.on_closed(self.close)
        sink.on_ready(self._catch_up)
        self._last_s = time.monotonic()
        self._catch_up()
        if self._ping_s is not None and self._leave is not None:
            self._ping_after(self._ping_s, self._ping_s)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._waiting:
            if self._run.ended:
                self.close()
                raise StopAsyncIteration
            self._news = anyio.Event()
            with anyio.move_on_after(self._ping_s) as silence:
                await self._news.wait()
            if silence.cancelled_caught:
                return PING
        return self._pop(self._size)

    def close(self) -> None:
        """Stop reading; idempotent."""
        if self._ping is not None:
            self._ping.cancel()
        self._level = None
        self._waiting.clear()
        self._size = 0
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    async def aclose(self) -> None:
        """``close``, for hosts that close their iterators."""
        self.close()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _catch_up(self) -> None:
        """Offer what waits, until all is offered or there is no room."""
        sink = self._sink
        if sink is None or self._leave is None:
            return
        while self._waiting:
            batch = self._pop(min(BATCH, sink.room))
            if not sink.offer(batch):
                self._waiting.appendleft(batch)
                self._size += len(batch)
                return
            self._last_s = time.monotonic()
        self._level = sink
        if self._run.ended:
            sink.end()

    def _pop(self, most: int) -> bytes:
        """Whole frames of up to ``most`` bytes together, or one that is longer."""
        waiting = self._waiting
        batch = [waiting.popleft()]
        size = len(batch[0])
        while waiting and size + len(waiting[0]) <= most:
            size += len(waiting[0])
            batch.append(waiting.popleft())
        self._size -= size
        return b"".join(batch)

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    def _ping_after(self, seconds: float, ping_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._ping = loop.call_later(seconds, self._ping_if_silent, ping_s)

    def _ping_if_silent(self, ping_s: float) -> None:
        """One that has something to read already is not told that the stream is alive."""
        rest = self._last_s + ping_s - time.monotonic()
        if rest <= 0:
            if self._level is not None and not self._level.queued:
                self._level.offer(PING)
            self._last_s = time.monotonic()
            rest = ping_s
        self._ping_after(rest, ping_s)
