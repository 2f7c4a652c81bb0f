"""An engine that dies is started again, and to whoever uses it it is one engine."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import AsyncIterator, Sequence

import anyio
import attrs
import pytest

from antiphon.engines.backoff import Backoff
from antiphon.engines.child.engine import ChildEngine
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
from antiphon.engines.supervisor import Supervisor
from engines.frame_watch import HANG_GUARD_S
from engines.process.fake_child import info
from engines.process.rigs import HELD, Watched, ask, fake
from engines.replay.builders import ManualClock

SECOND = 1_000_000_000


class Puppet:
    """An engine in the test's hands: it accepts, and dies when told."""

    def __init__(self, refusal: Exception | None = None, **changes: object) -> None:
        self.info = info(**changes)
        self.refusal = refusal
        self.gauges = Gauges()
        self.may_start = anyio.Event()
        self.may_start.set()
        self.stopped: list[float] = []
        self._open: dict[int, None] = {}
        self._step = 0

    async def start(self) -> EngineInfo:
        self._outbox = Outbox()
        await self.may_start.wait()
        if self.refusal is not None:
            raise self.refusal
        return self.info

    def submit(self, request: EngineRequest) -> None:
        self._open[request.key] = None
        self._row([request.key], Finish.NONE)

    def abort(self, keys: Sequence[int]) -> None:
        self._row([key for key in keys if key in self._open], Finish.ABORT)

    def frames(self) -> AsyncIterator[StepFrame]:
        return self._outbox.frames()

    async def stop(self, grace_s: float) -> None:
        self.stopped.append(grace_s)
        self._row(list(self._open), Finish.ABORT)
        self._outbox.close()

    def die(self) -> None:
        self.info.healthy = False
        self._row(list(self._open), Finish.ERROR)
        self._outbox.close()

    def _row(self, keys: Sequence[int], finish: Finish) -> None:
        if keys:
            frame = FrameBuilder(self._step)
            self._step += 1
            for key in keys:
                error = EngineError(code="engine_failed", message="dead")
                frame.row(key, finish=finish, error=error if finish is Finish.ERROR else None)
                if finish:
                    del self._open[key]
            self._outbox.add(frame.build(0, self.gauges))


@attrs.define
class Stage:
    """A supervisor over puppets, on a clock that stands still."""

    lives: list[Puppet]
    clock: ManualClock = attrs.field(factory=ManualClock)
    restarts: int = 0
    made: int = 0

    def make(self) -> EnginePort:
        self.made += 1
        return self.lives[self.made - 1]

    def restarted(self) -> None:
        self.restarts += 1

    def supervisor(self) -> Supervisor:
        return Supervisor(self.make, clock=self.clock, restarted=self.restarted)


def alive(info: EngineInfo) -> bool:
    return info.healthy


async def test_lives_follow_each_other() -> None:
    stage = Stage([Puppet(), Puppet()])
    engine = stage.supervisor()
    found = await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        engine.submit(ask(1))
        await anyio.wait_all_tasks_blocked()
        stage.lives[0].die()
        await anyio.wait_all_tasks_blocked()
        assert not alive(found)
        assert reader.watch[1].error is not None
        assert reader.watch[1].error.code == "engine_failed"
        engine.submit(ask(2))
        engine.abort([1, 2])
        await anyio.wait_all_tasks_blocked()
        assert reader.watch[2].error is not None
        assert reader.watch[2].error.code == "engine_overloaded"
        await stage.clock.advance(SECOND // 2 - 1)
        assert (stage.made, found.healthy) == (1, False)
        await stage.clock.advance(1)
        assert (stage.made, found.healthy, stage.restarts) == (2, True, 1)
        engine.submit(ask(3))
        await anyio.wait_all_tasks_blocked()
        assert reader.watch[3].accepted
        await engine.stop(0)
        await reader.over.wait()
    assert reader.watch[3].finish is Finish.ABORT
    steps = [frame.step for frame in reader.watch.log]
    assert all(one < other for one, other in itertools.pairwise(steps))
    assert not alive(found)


async def test_the_first_start_is_tried_once() -> None:
    stage = Stage([Puppet(EngineStartError("no such file"))])
    with pytest.raises(EngineStartError, match="no such file"):
        await stage.supervisor().start()
    assert stage.made == 1


async def test_a_start_that_fails_again_waits_longer(caplog: pytest.LogCaptureFixture) -> None:
    fails = [Puppet(EngineStartError("no memory")) for _ in range(3)]
    stage = Stage([Puppet(), *fails, Puppet(RuntimeError("odd")), Puppet(), Puppet(), Puppet()])
    engine = stage.supervisor()
    found = await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        stage.lives[0].die()
        for made, wait_s in enumerate([0.5, 1, 2, 4, 8], start=1):
            await stage.clock.advance(int(wait_s * SECOND) - 1)
            assert stage.made == made
            assert found.back_ns == stage.clock.now_ns() + 1, "the first one took no time to load"
            await stage.clock.advance(1)
            assert stage.made == made + 1
        assert alive(found)
        assert found.back_ns is None
        assert sum("no memory" in record.message for record in caplog.records) == 3
        stage.lives[5].die()  # soon after: what makes it die may be there still
        await stage.clock.advance(16 * SECOND - 1)
        assert not alive(found)
        await stage.clock.advance(1)
        assert alive(found)
        await stage.clock.advance(60 * SECOND)
        stage.lives[6].die()  # after a life of a minute all is forgiven
        await stage.clock.advance(SECOND // 2)
        assert alive(found)
        assert (stage.made, stage.restarts) == (8, 3)
        await engine.stop(0)
        await reader.over.wait()


async def test_an_engine_that_has_become_another_is_not_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage([Puppet(), Puppet(context_length=512), Puppet(kv_pages=1)])
    engine = stage.supervisor()
    found = await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        stage.lives[0].die()
        await stage.clock.advance(SECOND // 2)
        assert not alive(found)
        assert "context_length is 512, not 1000000" in caplog.text
        assert stage.lives[1].stopped == [0]
        await stage.clock.advance(SECOND)
        assert alive(found)
        assert found.kv_pages == 1, "what the present life has"
        await engine.stop(0)
        await reader.over.wait()


@pytest.mark.parametrize("when", ["waiting", "starting"])
async def test_a_stop_between_lives_ends_at_once(when: str) -> None:
    stage = Stage([Puppet(), Puppet()])
    stage.lives[1].may_start = anyio.Event()
    engine = stage.supervisor()
    await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        stage.lives[0].die()
        await stage.clock.advance(SECOND // 2 if when == "starting" else 1)
        assert stage.made == (2 if when == "starting" else 1)
        engine.submit(ask(1))
        with anyio.fail_after(HANG_GUARD_S):
            await engine.stop(3600)
            await reader.over.wait()
        assert reader.watch[1].finish is Finish.ERROR
        await engine.stop(0)


async def test_a_death_while_it_stops_is_no_reason_to_start_it() -> None:
    stage = Stage([Puppet()])
    engine = stage.supervisor()
    await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        engine.submit(ask(1))
        await engine.stop(0)
        stage.lives[0].die()
        await reader.over.wait()
    assert stage.made == 1


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=1, most_s=10, calm_s=5)
    assert [backoff.after(0) for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    assert backoff.after(4.9) == 10
    assert backoff.after(5) == 1
    assert backoff.after(0) == 2


LIVES = 100


async def test_any_number_of_kills_at_any_moment_loses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Real processes, killed while they load, work, or end: every key has one end, in order."""
    dice, restarts = random.Random(1), 0
    processes: list[ChildEngine] = []

    def make() -> ChildEngine:
        processes.append(fake())
        return processes[-1]

    def restarted() -> None:
        nonlocal restarts
        restarts += 1

    engine = Supervisor(make, backoff=Backoff(first_s=0, most_s=0), restarted=restarted)
    found = await engine.start()
    reader, key = Watched(engine), itertools.count()
    with anyio.fail_after(HANG_GUARD_S), caplog.at_level(logging.CRITICAL):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.read)
            while len(processes) < LIVES:
                if dice.random() < 0.15:
                    await reader.until(lambda: found.healthy)
                for _ in range(dice.randrange(4)):
                    held = dice.random() < 0.3
                    engine.submit(ask(next(key), max_tokens=HELD if held else dice.randrange(1, 9)))
                for _ in range(dice.choice((0, 0, 1, 3, 20))):
                    await anyio.lowlevel.checkpoint()
                if (process := processes[-1].process) is not None and process.status is None:
                    process.kill()
                    await process.reaped()
            await reader.until(lambda: found.healthy)
            last = next(key)
            engine.submit(ask(last))
            await engine.stop(HANG_GUARD_S)
            await reader.over.wait()
    assert reader.watch[last].finish is Finish.LENGTH
    assert set(reader.watch.stories) == set(range(last + 1))
    assert all(story.finish for story in reader.watch.stories.values())
    assert LIVES // 20 < restarts < LIVES
