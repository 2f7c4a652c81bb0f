"""An engine under the shared tests: how it is made, started and stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs

from antiphon.engines.port import EnginePort, EngineRequest
from engines.frame_watch import FrameWatch


@attrs.define(kw_only=True)
class EngineRig:
    """One engine that has not been started, and requests made for it. It runs four at once.

    Every request is a call of its own: its ``group`` is its key.
    """

    port: EnginePort
    short: Callable[[int], EngineRequest]
    """key -> a request that ends by itself with ``STOP`` or ``LENGTH`` after 1 to 64 tokens."""
    endless: Callable[[int], EngineRequest]
    """key -> a request that is still running many frames after its first token."""
    over_long: Callable[[int], EngineRequest]
    """key -> a request whose prompt exceeds the context."""
    kill: Callable[[], None]
    """Makes the running engine die at its next step."""


def load(watch: FrameWatch) -> tuple[int, int]:
    """How many run and wait by the latest frame."""
    gauges = watch.log[-1].gauges
    return gauges.running, gauges.waiting


@asynccontextmanager
async def running(rig: EngineRig) -> AsyncIterator[FrameWatch]:
    """The rig's engine, started; at the end it is stopped and its frames are read to their end."""
    await rig.port.start()
    watch = FrameWatch(rig.port.frames())
    yield watch
    await rig.port.stop(0)
    if not watch.ended:
        await watch.end()
    assert all(story.finish for story in watch.stories.values())
