"""An engine that is started again when it dies.

To whoever uses it, it is one engine: its frames go on, their steps count on, and only
``info.healthy`` says that it is not there. What was open when it died has had its ``ERROR`` rows
from the engine itself; what comes in between is refused for the time being.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import anyio
import attrs

from antiphon.engines.backoff import Backoff
from antiphon.engines.clock import Clock, MonotonicClock
from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.outbox import Outbox
from antiphon.engines.port import (
    EngineError,
    EngineInfo,
    EnginePort,
    EngineRequest,
    EngineStartError,
    Finish,
    Gauges,
    StepFrame,
)

SECOND_NS = 1_000_000_000
MAY_DIFFER = frozenset({"healthy", "back_ns", "kv_pages"})
"""Of an engine's description, what may be another in its next life: the memory that is free is.
The description then says what the present life has."""

log = logging.getLogger(__name__)


class Supervisor:
    """The engines that ``make`` makes, one after the other, as one.

    The first start is not tried twice: whoever starts a server wants to know. ``restarted`` is
    called for every later one that succeeds.
    """

    def __init__(
        self,
        make: Callable[[], EnginePort],
        *,
        backoff: Backoff | None = None,
        clock: Clock | None = None,
        restarted: Callable[[], object] = lambda: None,
    ) -> None:
        self.info: EngineInfo | None = None
        self._make = make
        self._backoff = backoff or Backoff()
        self._clock = clock or MonotonicClock()
        self._restarted = restarted
        self._engine: EnginePort | None = None
        """The one that lives, or the last one when all is over."""
        self._between: Outbox | None = None
        """Refusals, while none lives."""
        self._reviving: asyncio.Task[None] | None = None
        self._since_ns = self._load_ns = 0
        self._base = 0
        """What is added to the steps of the present life."""
        self._step = -1
        self._stopping = anyio.Event()
        self._consumed = False

    async def start(self) -> EngineInfo:
        """Start the first engine. Raises ``EngineStartError``."""
        if self._engine is not None:
            raise RuntimeError("the engine was started before")
        began_ns = self._clock.now_ns()
        self._engine = self._make()
        self.info = attrs.evolve(await self._engine.start())
        self._since_ns = self._clock.now_ns()
        self._load_ns = self._since_ns - began_ns
        return self.info

    def submit(self, request: EngineRequest) -> None:
        """Hand the request on, or refuse it while no engine lives."""
        if self._between is not None:
            error = EngineError(
                code="engine_overloaded", message="the engine is being started again"
            )
            frame = FrameBuilder(0)
            frame.row(request.key, finish=Finish.ERROR, error=error)
            self._say(frame)
        else:
            self._living().submit(request)

    def abort(self, keys: Sequence[int]) -> None:
        """Hand the keys on. Between two lives none is open."""
        if self._between is None:
            self._living().abort(keys)

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames of all lives, in order, until ``stop``."""
        if self.info is None:
            raise RuntimeError("the engine was not started")
        if self._consumed:
            raise RuntimeError("the frames of an engine have one consumer")
        self._consumed = True
        return self._frames(self.info)

    async def stop(self, grace_s: float) -> None:
        """Stop the engine, or its restart at once."""
        self._stopping.set()
        if self._reviving is not None and not self._reviving.done():
            self._reviving.cancel()
            await asyncio.wait({self._reviving})
        elif self._engine is not None:
            await self._engine.stop(grace_s)

    async def _frames(self, info: EngineInfo) -> AsyncIterator[StepFrame]:
        while True:
            async for frame in self._living().frames():
                frame.step += self._base
                self._step = frame.step
                yield frame
            # No turn of the event loop lies between the end of the frames and what follows, so no
            # request can come to an engine whose frames nobody reads.
            info.healthy = False
            if self._stopping.is_set():
                return
            dead, self._between = self._engine, Outbox()
            self._say(FrameBuilder(0))  # of what the dead one held, nothing is held any more
            self._reviving = asyncio.create_task(self._revive(info, self._between))
            async for frame in self._between.frames():
                self._step = frame.step = self._step + 1
                yield frame
            if self._stopping.is_set() or self._engine is dead:
                return
            self._between = None
            self._base = self._step + 1
            info.healthy = True
            self._restarted()

    async def _revive(self, info: EngineInfo, between: Outbox) -> None:
        """Try until an engine lives, or until cancelled. Whatever else ends it leaves it dead."""
        lived_s = (self._clock.now_ns() - self._since_ns) / SECOND_NS
        try:
            await _end(self._living())  # it may hold the memory of the device still
            while True:
                wait_s = self._backoff.after(lived_s)
                lived_s = 0.0
                log.warning("the engine is started again in %g s", wait_s)
                until_ns = self._clock.now_ns() + int(wait_s * SECOND_NS)
                info.back_ns = until_ns + self._load_ns
                await self._clock.wait(self._stopping, until_ns)
                if self._stopping.is_set():
                    return
                if (started := await self._try(info)) is not None:
                    break
            engine, found = started
            self._since_ns = self._clock.now_ns()
            self._engine = engine
            info.kv_pages = found.kv_pages
            log.warning("the engine lives again")
        except Exception:
            log.exception("the engine stays dead")
        finally:
            info.back_ns = None
            between.close()

    async def _try(self, info: EngineInfo) -> tuple[EnginePort, EngineInfo] | None:
        """An engine that is what the first one was, and what it says of itself, or None."""
        engine: EnginePort | None = None
        try:
            engine = self._make()
            found = await engine.start()
            if not (changed := _differences(info, found)):
                return engine, found
            log.error("the engine would not be what it was: %s", ", ".join(changed))
        except EngineStartError as failure:
            log.error("the engine does not start: %s", failure)
        except Exception:
            log.exception("the engine does not start")
        if engine is not None:
            await _end(engine)
        return None

    def _say(self, frame: FrameBuilder) -> None:
        """A frame of our own, while no engine lives."""
        if self._between is not None:
            self._between.add(frame.build(self._clock.now_ns(), Gauges()))

    def _living(self) -> EnginePort:
        if self._engine is None:
            raise RuntimeError("the engine was not started")
        return self._engine


async def _end(engine: EnginePort) -> None:
    """Stop what is of no use any more. What comes of that is no reason not to go on."""
    try:
        await engine.stop(0)
    except Exception:
        log.exception("an engine that is over does not stop")


def _differences(first: EngineInfo, second: EngineInfo) -> list[str]:
    return [
        f"{field.name} is {getattr(second, field.name)!r}, not {getattr(first, field.name)!r}"
        for field in attrs.fields(EngineInfo)
        if field.name not in MAY_DIFFER
        and getattr(first, field.name) != getattr(second, field.name)
    ]
