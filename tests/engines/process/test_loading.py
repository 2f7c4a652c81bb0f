"""A load that stands still is noticed, whatever holds it; one that takes its time is not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate, chain, count, repeat
from pathlib import Path

import anyio
import attrs
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.child.engine import ChildEngine
from antiphon.engines.child.loading import BLIND_LOOKS, LOOK_S, STILL_LOOKS, stalled
from antiphon.engines.child.process import EngineProcess
from antiphon.engines.port import EngineStartError
from antiphon.engines.supervisor import Supervisor
from engines.frame_watch import HANG_GUARD_S
from engines.process.rigs import Watched, fake
from engines.replay.builders import ManualClock

SECOND = 1_000_000_000
LOOK = int(LOOK_S * SECOND)
linux = pytest.mark.skipif(sys.platform != "linux", reason="its work is read from /proc")


@attrs.define
class Passing:
    """A clock whose waits are over at once; ``most`` of them, then none ends any more."""

    most: int
    ns: int = 0
    waits: int = 0

    def now_ns(self) -> int:
        return self.ns

    async def wait(self, event: anyio.Event, until_ns: int | None) -> None:
        if self.waits == self.most or until_ns is None:
            raise TimeoutError
        self.waits += 1
        self.ns = until_ns


async def looks(worked: Callable[[], int | None], *, most: int) -> int | None:
    """After how many looks it is found to stand still; None: not in ``most``."""
    clock = Passing(most)
    with suppress(TimeoutError):
        await stalled(clock, worked, least_s=0)
        return clock.waits
    return None


@given(st.lists(st.sampled_from([0, 0, 0, 1]), max_size=20))
async def test_it_stands_still_after_so_many_looks_in_a_row_without_work(work: list[int]) -> None:
    """What it has worked grows in some looks, and then no more."""
    told = chain(accumulate(work, initial=0), repeat(sum(work)))
    pattern = "".join(map(str, work)) + "0" * STILL_LOOKS
    expected = pattern.index("0" * STILL_LOOKS) + STILL_LOOKS
    assert await looks(lambda: next(told), most=expected) == expected
    told = chain(accumulate(work, initial=0), repeat(sum(work)))
    assert await looks(lambda: next(told), most=expected - 1) is None


async def test_a_load_that_works_may_last() -> None:
    numbers = count()
    assert await looks(lambda: next(numbers), most=10_000) is None


async def test_a_load_whose_work_nobody_tells_has_a_longest_time() -> None:
    assert await looks(lambda: None, most=10_000) == BLIND_LOOKS


@pytest.mark.parametrize(("least_s", "waited_s"), [(3, 120), (1000, 1000)])
async def test_whoever_waits_longer_for_a_step_waits_as_long_for_a_load(
    least_s: float, waited_s: int
) -> None:
    clock = Passing(STILL_LOOKS)
    told = await stalled(clock, lambda: 7, least_s=least_s)
    assert told == f"it has used no processor time for {waited_s} s"
    assert clock.ns == waited_s * SECOND


async def begun(pipe: str) -> None:
    """Wait until the load has begun: it opens the pipe."""
    with anyio.fail_after(HANG_GUARD_S):
        await to_thread.run_sync(Path(pipe).read_bytes, abandon_on_cancel=True)


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "began")
    return str(tmp_path / "began")


@linux
@pytest.mark.parametrize("way", ["waits", "is stopped"])
async def test_a_load_that_stands_still_is_a_start_error(pipe: str, way: str) -> None:
    clock, over = ManualClock(), anyio.Event()
    engine = fake(hang_s=3, clock=clock, load="never", began=pipe)

    async def start() -> None:
        with pytest.raises(EngineStartError, match=r"SIGKILL .*loading .*no processor .*120 s"):
            await engine.start()
        over.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await begun(pipe)
        process = engine.process
        assert process is not None
        if way == "is stopped":
            os.kill(process.pid, signal.SIGSTOP)
        assert await until_over(clock, process) >= STILL_LOOKS
        await over.wait()
        assert process.status == -signal.SIGKILL


async def until_over(clock: ManualClock, process: EngineProcess) -> int:
    """Let time pass until the process has been ended; the looks that took."""
    with anyio.fail_after(HANG_GUARD_S):
        for passed in count():
            if process.status is not None:
                return passed
            await clock.advance(LOOK)
    raise AssertionError


@linux
async def test_a_slow_load_may_last(pipe: str, tmp_path: Path) -> None:
    clock, enough = ManualClock(), tmp_path / "enough"
    engine = fake(hang_s=3, clock=clock, load="slow", began=pipe, enough=str(enough))

    async def start() -> None:
        assert (await engine.start()).healthy

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await begun(pipe)
        process = engine.process
        assert process is not None
        for look in range(1, 3 * STILL_LOOKS):
            await clock.parked(look * LOOK)
            before = process.worked()
            with anyio.fail_after(HANG_GUARD_S):
                while process.worked() == before:  # noqa: ASYNC110
                    await anyio.sleep(0.001)
            await clock.advance(LOOK)
            assert process.status is None
        enough.touch()
    await engine.stop(0)


@linux
async def test_a_restart_that_stands_still_is_tried_again(
    pipe: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock, lives = ManualClock(), list[ChildEngine]()

    def make() -> ChildEngine:
        hung = {"load": "never", "began": pipe} if len(lives) == 1 else {}
        lives.append(fake(hang_s=3, clock=clock, **hung))
        return lives[-1]

    engine = Supervisor(make, clock=clock)
    info = await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        assert lives[0].process is not None
        lives[0].process.kill()
        await clock.parked(SECOND // 2)
        await clock.advance(SECOND // 2)
        await begun(pipe)
        assert lives[1].process is not None
        await until_over(clock, lives[1].process)
        await reader.until(lambda: "is started again in 1 s" in caplog.text)
        assert "does not start" in caplog.text
        assert "no processor time for 120 s" in caplog.text
        assert not info.healthy
        await clock.parked(clock.ns + SECOND)
        await clock.advance(SECOND)
        await reader.until(lambda: info.healthy)
        await engine.stop(0)
        await reader.over.wait()
