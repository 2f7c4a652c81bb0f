"""What goes wrong while an engine is started again, and what is told of it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
from prometheus_client import CollectorRegistry

from antiphon.api.engine_metrics import EngineLoad
from antiphon.engines.backoff import Backoff
from antiphon.engines.port import EngineInfo, EngineStartError, Finish, Gauges
from antiphon.engines.supervisor import Supervisor
from engines.process.rigs import Watched, ask
from engines.process.test_supervisor import SECOND, Puppet, Stage, alive

STATES = ("held", "cached", "free")


@attrs.define
class Rig:
    """A started supervisor whose frames are read."""

    engine: Supervisor
    info: EngineInfo
    reader: Watched


@asynccontextmanager
async def rig(engine: Supervisor) -> AsyncIterator[Rig]:
    info = await engine.start()
    reader = Watched(engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        yield Rig(engine, info, reader)
        await engine.stop(0)
        await reader.over.wait()


class Stubborn(Puppet):
    """Its stop fails."""

    async def stop(self, grace_s: float) -> None:
        await super().stop(grace_s)
        raise RuntimeError("it is stuck")


@pytest.mark.parametrize("pages", [10, 400])
async def test_the_pages_told_are_always_those_of_the_present_life(pages: int) -> None:
    """And add up, also before its first frame, whatever was said last in the life before."""
    stage = Stage([Puppet(), Puppet(kv_pages=pages)])
    first, second = stage.lives
    first.gauges = Gauges(running=1, pages_free=54, pages_cached=20)
    second.gauges = Gauges(running=1, pages_free=pages - 2, pages_cached=1)
    async with rig(stage.supervisor()) as live:
        registry = CollectorRegistry()
        log = live.reader.watch.log
        registry.register(EngineLoad(lambda: log[-1].gauges, lambda: live.info.kv_pages))

        def told() -> tuple[float | None, ...]:
            name = "antiphon_kv_pages"
            return tuple(registry.get_sample_value(name, {"state": state}) for state in STATES)

        live.engine.submit(ask(1))
        live.engine.abort([1])
        await anyio.wait_all_tasks_blocked()
        assert told() == (10, 20, 34)
        first.die()  # nobody is open, so it has no last word
        await anyio.wait_all_tasks_blocked()
        assert told() == (0, 0, 64)
        await stage.clock.advance(SECOND // 2)
        assert alive(live.info)
        assert told() == (0, 0, pages)
        live.engine.submit(ask(2))
        await anyio.wait_all_tasks_blocked()
        assert told() == (2, 1, pages - 3)


async def test_a_dead_engine_whose_stop_fails_is_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage([Stubborn(), Stubborn(context_length=512), Puppet()])
    async with rig(stage.supervisor()) as live:
        stage.lives[0].die()
        await stage.clock.advance(SECOND // 2)
        assert not alive(live.info)
        assert "context_length is 512" in caplog.text
        await stage.clock.advance(SECOND)
        assert alive(live.info)
        assert caplog.text.count("that is over does not stop") == 2
        assert [life.stopped for life in stage.lives] == [[0], [0], []]


@pytest.mark.parametrize("refusal", [EngineStartError("no memory"), RuntimeError("odd")])
async def test_an_engine_that_does_not_start_is_stopped(refusal: Exception) -> None:
    """A process of it may be there still, and hold the memory of the device."""
    stage = Stage([Puppet(), Puppet(refusal), Puppet()])
    async with rig(stage.supervisor()) as live:
        stage.lives[0].die()
        await stage.clock.advance(SECOND // 2)
        assert stage.lives[1].stopped == [0]
        await stage.clock.advance(SECOND)
        assert alive(live.info)


class Broken(Backoff):
    """Knows of no wait."""

    def after(self, lived_s: float) -> float:
        raise ZeroDivisionError


async def test_what_nobody_foresaw_leaves_it_dead(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage([Puppet(), Puppet()])
    engine = Supervisor(stage.make, backoff=Broken(), clock=stage.clock, restarted=stage.restarted)
    async with rig(engine) as live:
        engine.submit(ask(1))
        await anyio.wait_all_tasks_blocked()
        stage.lives[0].die()
        await live.reader.over.wait()
        assert live.reader.watch[1].finish is Finish.ERROR
        assert not alive(live.info)
        assert (stage.made, stage.restarts) == (1, 0)
        engine.submit(ask(2))  # nobody reads any more; and nobody is hurt
        engine.abort([2])
    assert not alive(live.info)
    assert [one.message for one in caplog.records if one.exc_info] == ["the engine stays dead"]
