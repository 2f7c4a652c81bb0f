"""An engine in a process of its own, as the event loop sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from antiphon.engines.child.life import Life
from antiphon.engines.child.process import EngineProcess
from antiphon.engines.clock import Clock, MonotonicClock
from antiphon.engines.port import EngineInfo, EngineRequest, StepFrame

HANG_S = 120.0
"""Seconds without a turn after which an engine is taken for dead."""


class ChildEngine:
    """Spawns ``argv`` with the number of a socket, on which it speaks the codec."""

    def __init__(
        self,
        argv: Sequence[str],
        options: dict[str, Any],
        *,
        hang_s: float = HANG_S,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is spawned yet. ``options`` is an object of JSON; with ``hang_s`` 0 nobody asks
        whether the engine still turns, or still loads."""
        self._argv = list(argv)
        self._options = options
        self._hang_s = hang_s
        self._clock = clock or MonotonicClock()
        self._life: Life | None = None
        self._consumed = False

    @property
    def process(self) -> EngineProcess | None:
        """The process, from the start on."""
        return None if self._life is None else self._life.process

    async def start(self) -> EngineInfo:
        """Spawn, and wait until it has loaded. Cancelled, it ends the process."""
        if self._life is not None:
            raise RuntimeError("the engine was started before")
        self._life = Life(self._argv, self._options, hang_s=self._hang_s, clock=self._clock)
        return await self._life.loaded()

    def submit(self, request: EngineRequest) -> None:
        """Send the request, or refuse it if the engine is over."""
        self._started().submit(request)

    def abort(self, keys: Sequence[int]) -> None:
        """Send the keys; the engine ends them before its next step."""
        self._started().abort(keys)

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames, in order, until the engine has stopped or died."""
        life = self._started()
        if self._consumed:
            raise RuntimeError("the frames of an engine have one consumer")
        self._consumed = True
        return life.outbox.frames()

    async def stop(self, grace_s: float) -> None:
        """Refuse new requests, wait for the open ones, abort what is open after ``grace_s``.

        A process that does not heed that is ended.
        """
        if self._life is not None:
            await self._life.stop(grace_s)

    def _started(self) -> Life:
        if self._life is None:
            raise RuntimeError("the engine was not started")
        return self._life
