"""The contract of the engine port as one test class; every engine's tests subclass it.

A subclass defines the fixture ``rig`` and inherits the tests::

    class TestReplayContract(EngineContract):
        @pytest.fixture
        def rig(self) -> EngineRig: ...
"""

from __future__ import annotations

import random

import anyio
import attrs
import pytest

from antiphon.engines.port import Finish
from engines.frame_watch import HANG_GUARD_S, FrameWatch
from engines.options_contract import OptionsContract
from engines.rig import EngineRig, load, running

UNKNOWN_KEY = 4_000_000_000
CROWD = 100
"""More requests than the engine of a rig runs and lets wait."""


class EngineContract(OptionsContract):
    """Points (a) to (f) of the port, and what its docstrings promise beyond them."""

    @pytest.fixture
    def rig(self) -> EngineRig:
        """The engine under test."""
        raise NotImplementedError

    async def test_info_describes_the_engine(self, rig: EngineRig) -> None:
        info = await rig.port.start()
        assert info.healthy
        assert info.model_id
        assert info.name
        assert info.context_length > 0
        assert all(0 <= eos < info.vocab_size for eos in info.eos_ids)
        assert info.max_running > 0
        await rig.port.stop(0)

    async def test_every_key_gets_one_terminal_row(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            keys = range(1, 9)
            for key in keys:
                rig.port.submit(rig.short(key))
            await watch.finished(*keys)
            for key in keys:
                assert watch[key].finish in (Finish.STOP, Finish.LENGTH)
                assert watch[key].accepted

    async def test_requests_join_and_leave_between_steps(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.endless(1))
            await watch.grown(1, 2)
            for key in (2, 3, 4):
                rig.port.submit(rig.short(key))
                await watch.finished(key)
                assert not watch[1].finish
            rig.port.abort([1])
            await watch.finished(1)

    async def test_the_same_request_gives_the_same_tokens(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.short(1))
            await watch.finished(1)
            rig.port.submit(rig.short(2))
            await watch.finished(2)
            assert watch[1].tokens == watch[2].tokens
            assert watch[1].finish is watch[2].finish

    async def test_max_tokens_is_kept(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            for key in (0, 1, 2, 3):
                rig.port.submit(attrs.evolve(rig.endless(key), max_tokens=key))
            await watch.finished(0, 1, 2, 3)
            assert [len(watch[key].tokens) for key in range(4)] == [0, 1, 2, 3]
            assert {watch[key].finish for key in range(4)} == {Finish.LENGTH}

    async def test_abort_before_the_first_token(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.endless(1))
            rig.port.abort([1])
            await watch.finished(1)
            assert watch[1].finish is Finish.ABORT

    async def test_abort_in_midstream_leaves_the_others(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.endless(1))
            rig.port.submit(rig.endless(2))
            await watch.grown(1, 1)
            await watch.grown(2, 1)
            rig.port.abort([1])
            await watch.finished(1)
            assert watch[1].finish is Finish.ABORT
            await watch.grown(2, len(watch[2].tokens) + 2)
            assert not watch[2].finish

    async def test_abort_is_idempotent_and_ignores_strangers(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.short(1))
            await watch.finished(1)
            rig.port.abort([1, UNKNOWN_KEY])
            rig.port.submit(rig.endless(2))
            await watch.grown(2, 1)
            rig.port.abort([2, 2])
            rig.port.abort([2])
            await watch.finished(2)
            rig.port.submit(rig.short(3))
            await watch.finished(3)
            assert UNKNOWN_KEY not in watch.stories

    async def test_over_long_prompts_are_refused(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.over_long(1))
            rig.port.submit(rig.short(2))
            await watch.finished(1, 2)
            error = watch[1].error
            assert error is not None
            assert error.code == "context_length_exceeded"
            assert not watch[1].accepted
            assert watch[2].finish in (Finish.STOP, Finish.LENGTH)

    async def test_an_idle_engine_takes_a_call_of_any_size_and_lets_others_queue(
        self, rig: EngineRig
    ) -> None:
        async with running(rig) as watch:
            for key in range(CROWD):
                rig.port.submit(attrs.evolve(rig.short(key), group=0, choice=key))
            rig.port.submit(rig.short(CROWD))
            await watch.finished(*range(CROWD + 1))
            ends = {watch[key].finish for key in range(CROWD + 1)}
            assert ends <= {Finish.STOP, Finish.LENGTH}

    async def test_a_full_queue_refuses_whole_calls(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            for key in range(CROWD):
                rig.port.submit(rig.endless(key))
            await watch.finished(CROWD - 1)
            refused = [key for key in range(CROWD) if watch[key].finish]
            assert refused == list(range(refused[0], CROWD)), "first come, first served"
            # Room comes between the siblings of a call that began without: the rest is refused too.
            first, *others = (
                attrs.evolve(rig.short(CROWD + index), group=CROWD, choice=index)
                for index in range(3)
            )
            rig.port.submit(first)
            rig.port.abort(range(CROWD))
            await watch.finished(first.key, *range(CROWD))
            for other in others:
                rig.port.submit(other)
            await watch.finished(*(other.key for other in others))
            for key in (*refused, first.key, *(other.key for other in others)):
                error = watch[key].error
                assert error is not None
                assert error.code == "engine_overloaded"
            rig.port.submit(rig.short(2 * CROWD))
            await watch.finished(2 * CROWD)
            assert watch[2 * CROWD].finish in (Finish.STOP, Finish.LENGTH)

    async def test_frames_wait_for_a_late_consumer(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            for key in (1, 2):
                rig.port.submit(rig.short(key))
            await rig.port.stop(HANG_GUARD_S)
            await watch.end()
            for key in (1, 2):
                assert watch[key].finish in (Finish.STOP, Finish.LENGTH)
                assert watch[key].tokens

    async def test_stop_without_grace_aborts_what_is_open(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.endless(1))
            await watch.grown(1, 1)
            rig.port.submit(rig.endless(2))
            await rig.port.stop(0)
            await watch.end()
            assert watch[1].finish is watch[2].finish is Finish.ABORT

    async def test_stop_refuses_new_work(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.short(1))
            await watch.grown(1, 1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rig.port.stop, 0)
                await anyio.lowlevel.checkpoint()
                rig.port.submit(rig.short(2))
                rig.port.abort([2])
            await watch.end()
            assert watch[1].finish
            assert watch[2].finish in (Finish.ERROR, Finish.ABORT)
            assert not watch[2].tokens

    async def test_a_request_after_the_stop_gets_its_terminal_row(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            await rig.port.stop(0)
            rig.port.submit(rig.short(1))
            await watch.end()
            assert watch[1].finish in (Finish.ERROR, Finish.ABORT)

    async def test_stop_twice_and_submit_after_it_do_not_raise(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            await rig.port.stop(0)
            await watch.end()
            await rig.port.stop(0)
            rig.port.submit(rig.short(1))
            rig.port.abort([1])

    async def test_death_ends_every_open_key(self, rig: EngineRig) -> None:
        info = await rig.port.start()
        watch = FrameWatch(rig.port.frames())
        for key in (1, 2, 3):
            rig.port.submit(rig.endless(key))
        await watch.grown(1, 1)
        rig.kill()
        rig.port.submit(rig.endless(4))
        await watch.end()
        for key in (1, 2, 3, 4):
            error = watch[key].error
            assert error is not None
            assert error.code == "engine_failed"
        assert not info.healthy
        assert load(watch) == (0, 0)
        rig.port.submit(rig.short(5))
        await rig.port.stop(0)

    @pytest.mark.parametrize("seed", range(5))
    async def test_any_mix_of_submits_and_aborts_ends(self, rig: EngineRig, seed: int) -> None:
        dice = random.Random(seed)
        async with running(rig) as watch:
            for key in range(24):
                make = dice.choice((rig.short, rig.short, rig.endless))
                rig.port.submit(make(key))
                if dice.random() < 0.5:
                    await anyio.lowlevel.checkpoint()
                if dice.random() < 0.3:
                    rig.port.abort([dice.randrange(key + 1) for _ in range(3)])
                if dice.random() < 0.3:
                    await watch.until(lambda: bool(watch.stories))
            rig.port.abort(range(24))
            await watch.finished(*range(24))
            assert set(watch.stories) == set(range(24))
