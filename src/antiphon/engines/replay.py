"""The replay engine: plays recordings through the engine port, on the event loop itself.

The request's ``model`` names the recording and ``choice`` the recorded choice. Sampling parameters
mean nothing to a recording and change nothing. One task plays everything; it never waits for the
consumer of its frames.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

import anyio
import anyio.lowlevel

from antiphon.engines.clock import Clock, MonotonicClock
from antiphon.engines.pace import Pace
from antiphon.engines.port import (
    PAD_ID,
    Capability,
    EngineError,
    EngineInfo,
    EngineRequest,
    EngineStartError,
    StepFrame,
)
from antiphon.engines.recording import Recording
from antiphon.engines.replay_schedule import CONTEXT_LENGTH, ReplaySchedule

CAPABILITIES = frozenset(
    {
        Capability.SEED,
        Capability.LOGPROBS,
        Capability.GRAMMAR,
        Capability.FORCED_CALLS,
        Capability.LOGIT_BIAS,
        Capability.MIN_TOKENS,
        Capability.MIN_P,
        Capability.PENALTIES,
        Capability.ALLOWED_IDS,
        Capability.PRIORITY,
    }
)
"""All but ``prompt_logprobs``: nothing was recorded that could answer such a request."""

STOPPED = EngineError(code="engine_overloaded", message="the engine has stopped")
DIED = EngineError(code="engine_failed", message="the replay engine died")

log = logging.getLogger(__name__)


class ReplayEngine:
    """An ``EnginePort`` over ``recordings`` (name to recording).

    At most ``max_running`` requests play at once. Calls (requests that share a ``group``) queue for
    that, ``max_waiting`` of them (default: four times ``max_running``); one more is refused whole
    with ``engine_overloaded``. All requests whose next recorded step is due share a frame, one step
    each.
    """

    def __init__(
        self,
        recordings: Mapping[str, Recording],
        *,
        pace: Pace = Pace.RECORDED,
        max_running: int = 512,
        max_waiting: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._playable = bool(recordings)
        self._max_running = max_running
        waiting = 4 * max_running if max_waiting is None else max_waiting
        self._schedule = ReplaySchedule(recordings, pace, max_running, waiting)
        self._clock = clock or MonotonicClock()
        self._player: asyncio.Task[None] | None = None
        self._commanded = anyio.Event()
        self._frames: deque[StepFrame] = deque()
        self._arrived = anyio.Event()
        self._ended = anyio.Event()
        self._consumed = False

    async def start(self) -> EngineInfo:
        """Ready at once. Raises ``EngineStartError`` when there is nothing to play."""
        if not self._playable:
            raise EngineStartError("there are no recordings to replay")
        info = EngineInfo(
            name="replay",
            model_id="replay",
            vocab_size=PAD_ID,
            context_length=CONTEXT_LENGTH,
            eos_ids=frozenset(),
            max_running=self._max_running,
            page_size=1,
            kv_pages=0,
            dtype="none",
            device="none",
            capabilities=CAPABILITIES,
        )
        self._player = asyncio.create_task(self._play(info), name="replay engine")
        return info

    def submit(self, request: EngineRequest) -> None:
        """Take a request, or refuse it with an ``ERROR`` row."""
        self._schedule.submit(request)
        if self._ended.is_set():  # nobody plays any more, but the refusal can still be read
            self._deliver_last()
        self._command()

    def abort(self, keys: Sequence[int]) -> None:
        """End these requests in the next frame."""
        self._schedule.abort(keys)
        self._command()

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames. A second call raises ``RuntimeError``: there is one consumer."""
        if self._consumed:
            raise RuntimeError("the frames of an engine have one consumer")
        self._consumed = True
        return self._take()

    async def stop(self, grace_s: float) -> None:
        """Refuse new work, play on for ``grace_s``, then abort what is open."""
        if self._schedule.closed is None:
            self._schedule.closed = STOPPED
        if self._player is None:
            self._ended.set()
        self._command()
        await self._clock.wait(self._ended, self._clock.now_ns() + round(grace_s * 1e9))
        self._schedule.abort_all()
        self._command()
        await self._ended.wait()

    def _command(self) -> None:
        """Wake the player: there is something new to do."""
        self._commanded, commanded = anyio.Event(), self._commanded
        commanded.set()

    async def _play(self, info: EngineInfo) -> None:
        try:
            while self._schedule.busy or self._schedule.closed is None:
                commanded = self._commanded
                frame = self._schedule.step(self._clock.now_ns())
                if frame is None:
                    await self._clock.wait(commanded, self._schedule.next_due_ns)
                    continue
                self._deliver(frame)
                # Flat out this is the only point at which anything else gets to run.
                await anyio.lowlevel.checkpoint()
        except Exception:
            log.exception("the replay engine died")
            info.healthy = False
            self._schedule.fail_all(DIED)
            self._deliver_last()
        finally:
            self._ended.set()
            self._arrived.set()

    def _deliver_last(self) -> None:
        """What is terminal needs no clock."""
        if (last := self._schedule.step(0)) is not None:
            self._deliver(last)

    def _deliver(self, frame: StepFrame) -> None:
        self._frames.append(frame)
        self._arrived.set()

    async def _take(self) -> AsyncIterator[StepFrame]:
        while True:
            while self._frames:
                yield self._frames.popleft()
            if self._ended.is_set():
                return
            self._arrived = anyio.Event()
            await self._arrived.wait()
