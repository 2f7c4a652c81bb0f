"""Whatever a process dies of, every open request has one end, and at once."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from antiphon.engines.child.engine import ChildEngine
from antiphon.engines.child.pulse import Pulse
from antiphon.engines.port import EngineStartError, Finish
from engines.frame_watch import HANG_GUARD_S, FrameWatch
from engines.process.rigs import HELD, ask, fake, started
from engines.replay.builders import ManualClock

WAYS = {
    "exit": "gone",
    "segfault": "gone",
    "memory": "gone",
    "garbage": "does not begin as one",
    "half": "cut",
    "close": "gone",
    "again": "step 0 came after",
    "fault": "device is gone",
}
"""What a process can do, and what is said of it."""


@pytest.mark.parametrize("way", WAYS)
async def test_death_ends_every_open_key(way: str) -> None:
    engine = fake()
    info = await engine.start()
    watch = FrameWatch(engine.frames())
    for key in (1, 2):
        engine.submit(ask(key, max_tokens=HELD))
    await watch.grown(1, 3)
    await watch.grown(2, 3)
    engine.submit(ask(3, of=way, max_tokens=HELD))
    engine.submit(ask(4))
    await watch.end()
    for key in (1, 2, 3, 4):
        error = watch[key].error
        assert error is not None
        assert error.code == "engine_failed"
        assert WAYS[way] in error.message
    assert watch[1].tokens == watch[2].tokens == [ord("a")] * 3
    assert not info.healthy
    engine.submit(ask(5))
    engine.abort([5])
    await engine.stop(0)
    assert engine.process is not None
    assert engine.process.status is not None, "the process has gone, whatever it did"


async def test_what_was_said_before_the_death_is_not_lost() -> None:
    """Its frames are in the socket when it is killed, and commands cannot be written any more."""
    engine = fake()
    await engine.start()
    watch = FrameWatch(engine.frames())
    for key in range(8):
        engine.submit(ask(key, max_tokens=HELD))
    engine.submit(ask(8, of="exit"))
    assert engine.process is not None
    await engine.process.reaped()
    for key in range(9, 200):
        engine.submit(ask(key))
        engine.abort([key - 9])
    await watch.end()
    assert all(watch[key].accepted for key in range(9)), "they were read after the writes failed"
    assert {watch[key].finish for key in range(200)} == {Finish.ERROR}
    await engine.stop(0)


async def test_a_process_that_makes_no_turn_is_ended() -> None:
    clock = ManualClock()
    engine = fake(hang_s=10, clock=clock)
    async with started(engine) as watch:
        engine.submit(ask(1, max_tokens=HELD))
        engine.submit(ask(2, of="hang"))
        await watch.until(lambda: watch[2].accepted)  # the first question had its answer before
        await clock.parked(2_500_000_000)
        await clock.advance(2_500_000_000)
        await clock.parked(12_500_000_000)
        await clock.advance(9_999_999_999)
        assert engine.process is not None
        assert engine.process.status is None
        await clock.advance(1)
        await watch.end()
        for key in (1, 2):
            error = watch[key].error
            assert error is not None
            assert "turn for 10 s" in error.message


async def test_a_pulse_that_goes_on_is_asked_for_again_and_again() -> None:
    clock, asked, lost = ManualClock(), 0, anyio.Event()

    def ping() -> None:
        nonlocal asked
        asked += 1

    pulse = Pulse(clock, ping, most_s=8)

    async def watch() -> None:
        await pulse.lost()
        lost.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        for turn in range(1, 6):
            await clock.advance(7_000_000_000)
            assert asked == turn
            pulse.beat()
            await clock.advance(1_999_999_999)
            assert asked == turn
            await clock.advance(1)
        assert not lost.is_set()
        await clock.advance(8_000_000_000)
        assert lost.is_set()


async def test_a_stopped_process_is_ended_as_well() -> None:
    clock = ManualClock()
    engine = fake(hang_s=10, clock=clock)
    async with started(engine) as watch:
        assert engine.process is not None
        await clock.parked(2_500_000_000)
        os.kill(engine.process.pid, signal.SIGSTOP)
        engine.submit(ask(1))
        await clock.advance(2_500_000_000)
        await clock.parked(12_500_000_000)
        await clock.advance(10_000_000_000)
        await watch.end()
        assert watch[1].finish is Finish.ERROR


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ("refused", "^model.gguf: no such file; give another$"),
        ("broken", "ValueError"),
        ("exit", "left with status 9 while it was loading"),
    ],
)
async def test_what_it_cannot_load_is_said(load: str, told: str) -> None:
    engine = fake(load=load)
    with pytest.raises(EngineStartError, match=told):
        await engine.start()
    assert [frame async for frame in engine.frames()] == []
    await engine.stop(1)
    assert engine.process is not None
    assert engine.process.status is not None


async def begun(pipe: Path) -> None:
    """Wait until the load has begun: it opens the pipe."""
    with anyio.fail_after(HANG_GUARD_S):
        await to_thread.run_sync(pipe.read_bytes, abandon_on_cancel=True)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "began")
    return tmp_path / "began"


async def test_a_kill_while_it_loads_is_a_start_error(pipe: Path) -> None:
    engine = fake(load="never", began=str(pipe))

    async def kill() -> None:
        await begun(pipe)
        assert engine.process is not None
        engine.process.kill()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        with pytest.raises(EngineStartError, match="SIGKILL while it was loading"):
            await engine.start()


@pytest.mark.parametrize("way", ["cancel", "stop"])
async def test_a_load_that_nobody_waits_for_is_ended(pipe: Path, way: str) -> None:
    engine = fake(load="never", began=str(pipe))

    async def start() -> None:
        with pytest.raises(EngineStartError):
            await engine.start()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await begun(pipe)
        if way == "stop":
            await engine.stop(0)
        else:
            tasks.cancel_scope.cancel()
    assert engine.process is not None
    assert await engine.process.reaped()


async def test_a_program_that_is_not_there_is_a_start_error() -> None:
    with pytest.raises(EngineStartError, match="cannot start"):
        await ChildEngine(["/no/such/python"], {}).start()


async def test_the_log_says_what_ended_it(caplog: pytest.LogCaptureFixture) -> None:
    engine = fake()
    with caplog.at_level(logging.ERROR):
        async with started(engine) as watch:
            engine.submit(ask(1, of="segfault"))
            await watch.end()
        await anyio.wait_all_tasks_blocked()
    assert any("was ended by SIGSEGV" in record.message for record in caplog.records)


async def test_a_stop_that_is_not_heeded_ends_the_process() -> None:
    """A hung step holds nobody: the open keys end in ABORT, and the process by force."""
    engine = fake()
    async with started(engine) as watch:
        engine.submit(ask(1, of="hang"))
        await watch.until(lambda: watch[1].accepted)
        await engine.stop(0)
        assert engine.process is not None
        assert engine.process.status == -signal.SIGKILL
        await watch.end()
        assert watch[1].finish is Finish.ABORT
