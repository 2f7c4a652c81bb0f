"""Reading a run's frames: a cursor into the list, nothing else.

A reader that falls behind holds no queue; it takes all frames since its cursor in one piece and
is level again. Frames are never split and never merged into each other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import TracebackType

import anyio

from antiphon.runs.run import Run

PING = b": ping\n\n"
"""An SSE comment: it keeps connections open and is no event."""


class Subscription:
    """Bytes of one stream, whole frames at a time, a ping after ``ping_s`` silent seconds.

    ``leave`` is called exactly once, when the reader has gone or has read everything.
    """

    def __init__(self, run: Run, *, ping_s: float, leave: Callable[[], None]) -> None:
        self._run = run
        self._ping_s = ping_s if ping_s > 0 else None
        self._leave: Callable[[], None] | None = leave
        self._cursor = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        run = self._run
        while self._cursor == len(run.frames):
            if run.ended:
                self.close()
                raise StopAsyncIteration
            with anyio.move_on_after(self._ping_s) as silence:
                await run.changed()
            if silence.cancelled_caught:
                return PING
        frames = run.frames[self._cursor :]
        self._cursor += len(frames)
        return b"".join(frames)

    def close(self) -> None:
        """Stop reading; idempotent."""
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
