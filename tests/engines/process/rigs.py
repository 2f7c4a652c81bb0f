"""Engines whose process is ``fake_child.py``."""

from __future__ import annotations

import sys
from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from antiphon.engines.child.engine import ChildEngine
from antiphon.engines.clock import Clock
from antiphon.engines.port import EnginePort, EngineRequest
from engines.frame_watch import HANG_GUARD_S, FrameWatch

ARGV = (sys.executable, "-P", str(Path(__file__).parent / "fake_child.py"))
HELD = 1_000


def fake(*, hang_s: float = 0.0, clock: Clock | None = None, **options: Any) -> ChildEngine:
    return ChildEngine(ARGV, options, hang_s=hang_s, clock=clock)


def ask(key: int, *, of: str = "plain", max_tokens: int = 5) -> EngineRequest:
    return EngineRequest(
        key=key,
        id=f"{of}-0",
        group=key,
        model="m",
        prompt=array("I", [1, 2]),
        max_tokens=max_tokens,
    )


class Watched:
    """Reads the frames in a task of its own, as the server does."""

    def __init__(self, engine: EnginePort) -> None:
        self.watch = FrameWatch(engine.frames())
        self.over = anyio.Event()

    async def read(self) -> None:
        async for frame in self.watch.frames:
            self.watch.read(frame)
        self.over.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(HANG_GUARD_S):
            while not condition():  # noqa: ASYNC110 - nothing tells; and others need the core
                await anyio.sleep(0.001)


@asynccontextmanager
async def started(engine: ChildEngine) -> AsyncIterator[FrameWatch]:
    """The engine, started; at the end it is stopped and its frames are read to their end."""
    await engine.start()
    watch = FrameWatch(engine.frames())
    yield watch
    await engine.stop(0)
    if not watch.ended:
        await watch.end()
    assert all(story.finish for story in watch.stories.values())
