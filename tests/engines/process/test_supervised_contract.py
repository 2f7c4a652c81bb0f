"""An engine that would be started again keeps the contract, but for its death."""

from __future__ import annotations

import anyio
import pytest

from antiphon.engines.port import EnginePort, Finish
from antiphon.engines.supervisor import Supervisor
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.child import torch_child
from antiphon.engines.torch.options import EngineOptions
from antiphon.models.files import ModelFiles
from engines.contract import EngineContract
from engines.frame_watch import HANG_GUARD_S
from engines.process.rigs import Watched
from engines.replay.builders import ManualClock
from engines.rig import EngineRig
from engines.torch.requests import a_request

SECOND = 1_000_000_000


def options(files: ModelFiles) -> EngineOptions:
    return EngineOptions(files=files, device="cpu", dtype="float32", max_running=4, max_waiting=20)


class TestSupervisedContract(EngineContract):
    """Around the thread, which starts at once."""

    clock: ManualClock

    @pytest.fixture
    def rig(self, tiny: ModelFiles) -> EngineRig:
        self.clock = ManualClock()
        lives: list[TorchEngine] = []

        def make() -> EnginePort:
            lives.append(TorchEngine(options(tiny)))
            return lives[-1]

        def kill() -> None:
            assert lives[-1]._engine is not None
            lives[-1]._engine.runner = None  # type: ignore[assignment]  # it dies of it

        return EngineRig(
            port=Supervisor(make, clock=self.clock),
            short=lambda key: a_request(key, seed=3),
            endless=lambda key: a_request(key, max_tokens=100_000),
            over_long=lambda key: a_request(key, [1] * 2048),
            kill=kill,
        )

    async def test_death_ends_every_open_key(self, rig: EngineRig) -> None:
        """And the next life answers."""
        await die(rig, self.clock)


async def die(rig: EngineRig, clock: ManualClock) -> None:
    """The clock stands still until what happens between two lives has been seen."""
    info = await rig.port.start()
    reader = Watched(rig.port)
    watch = reader.watch
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        rig.port.submit(rig.short(0))
        for key in (1, 2, 3):
            rig.port.submit(rig.endless(key))
        await reader.until(lambda: bool(watch[0].finish and watch[1].tokens))
        rig.kill()
        rig.port.submit(rig.endless(4))
        await reader.until(lambda: all(watch[key].finish for key in (1, 2, 3, 4)))
        for key in (1, 2, 3, 4):
            error = watch[key].error
            assert error is not None
            assert error.code == "engine_failed"
        await reader.until(lambda: not info.healthy)
        rig.port.submit(rig.short(5))
        await clock.parked(SECOND // 2)
        await clock.advance(SECOND // 2)
        await reader.until(lambda: info.healthy)
        rig.port.submit(rig.short(6))
        await rig.port.stop(HANG_GUARD_S)
        await reader.over.wait()
    assert watch[5].finish is Finish.ERROR
    assert watch[6].tokens == watch[0].tokens


async def test_a_killed_process_is_replaced_by_one_that_says_the_same(tiny: ModelFiles) -> None:
    lives = []

    def make() -> EnginePort:
        lives.append(torch_child(options(tiny)))
        return lives[-1]

    def kill() -> None:
        process = lives[-1].process
        assert process is not None
        process.kill()

    clock = ManualClock()
    rig = EngineRig(
        port=Supervisor(make, clock=clock),
        short=lambda key: a_request(key, seed=3),
        endless=lambda key: a_request(key, max_tokens=100_000),
        over_long=lambda key: a_request(key, [1] * 2048),
        kill=kill,
    )
    await die(rig, clock)
    assert len(lives) == 2
