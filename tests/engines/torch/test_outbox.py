"""One wake-up for many frames, and nothing lost."""

from __future__ import annotations

import asyncio
import logging
import threading

import anyio
import pytest

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.outbox import BACKLOG_WARNING, Outbox
from antiphon.engines.port import Gauges, StepFrame


def a_frame(step: int) -> StepFrame:
    return FrameBuilder(step).build(0, Gauges())


def produce(outbox: Outbox, steps: range) -> None:
    """On a thread of its own, to its end."""

    def put_all() -> None:
        for step in steps:
            outbox.put(a_frame(step))

    thread = threading.Thread(target=put_all)
    thread.start()
    thread.join()


async def test_frames_that_wait_together_cost_one_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    outbox, wake_ups = Outbox(), 0
    real = outbox._wake

    def counted() -> None:
        nonlocal wake_ups
        wake_ups += 1
        real()

    monkeypatch.setattr(outbox, "_wake", counted)
    frames = outbox.frames()
    for turn in range(3):
        steps = range(50 * turn, 50 * turn + 50)
        produce(outbox, steps)
        assert [(await anext(frames)).step for _ in steps] == list(steps)
        await anyio.lowlevel.checkpoint()
        assert wake_ups == turn + 1


async def test_frames_from_another_thread_arrive_in_order_and_end() -> None:
    outbox, count = Outbox(), 5_000
    loop = asyncio.get_running_loop()

    def put_all() -> None:
        for step in range(count):
            outbox.put(a_frame(step))
        loop.call_soon_threadsafe(outbox.close)

    thread = threading.Thread(target=put_all)
    thread.start()
    assert [frame.step async for frame in outbox.frames()] == list(range(count))
    thread.join()


async def test_a_backlog_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    outbox = Outbox()
    with caplog.at_level(logging.WARNING):
        for step in range(BACKLOG_WARNING + 5):
            outbox.put(a_frame(step))
    assert len(caplog.records) == 1
