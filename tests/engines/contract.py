"""The contract of the engine port as one test class; every engine's tests subclass it.

A subclass defines the fixture ``rig`` and inherits the tests::

    class TestReplayContract(EngineContract):
        @pytest.fixture
        def rig(self) -> EngineRig: ...
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from antiphon.engines.port import PAD_ID, Capability, EnginePort, EngineRequest, Finish
from engines.frame_watch import HANG_GUARD_S, FrameWatch

UNKNOWN_KEY = 4_000_000_000
CROWD = 100
"""More requests than the engine of a rig runs and lets wait."""


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


class EngineContract:
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

    @pytest.mark.parametrize("make", ["short", "endless"])
    async def test_without_a_token_to_give_the_prompt_is_read_and_nothing_said(
        self, rig: EngineRig, make: str
    ) -> None:
        async with running(rig) as watch:
            request: EngineRequest = getattr(rig, make)(1)
            for key, min_tokens in ((1, 0), (2, 5)):
                rig.port.submit(
                    attrs.evolve(request, key=key, max_tokens=0, min_tokens=min_tokens, logprobs=2)
                )
            rig.port.submit(rig.short(3))
            await watch.finished(1, 2, 3)
            for key in (1, 2):
                assert (watch[key].accepted, watch[key].rows) == (True, 2)
                assert (watch[key].finish, watch[key].tokens) == (Finish.LENGTH, [])
            assert watch[3].tokens

    async def test_prompt_logprobs_are_given_where_they_are_offered(self, rig: EngineRig) -> None:
        info = await rig.port.start()
        offered = Capability.PROMPT_LOGPROBS in info.capabilities
        watch = FrameWatch(rig.port.frames())
        asked = {1: (0, None), 2: (2, None), 3: (20, 0), 4: (0, 1)}
        for key, (count, max_tokens) in asked.items():
            request = attrs.evolve(rig.short(key), prompt_logprobs=count)
            if max_tokens is not None:
                request.max_tokens = max_tokens
            rig.port.submit(request)
        rig.port.submit(rig.short(5))
        await watch.finished(*asked, 5)
        assert watch[5].prompt_lp is None
        for key, (count, _) in asked.items():
            story = watch[key]
            if offered:
                assert story.finish in (Finish.STOP, Finish.LENGTH)
                assert story.prompt_lp is not None
                assert story.prompt_lp.top_n == count
                assert len(story.prompt_lp.logprob) == len(rig.short(key).prompt) - 1
                assert all(value <= 0 for value in story.prompt_lp.logprob)
            else:
                assert story.error is not None
                assert story.error.code == "unsupported"
        await rig.port.stop(0)
        await watch.end()

    async def test_zero_logprobs_are_those_of_the_drawn_tokens_alone(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(attrs.evolve(rig.short(1), logprobs=0))
            rig.port.submit(attrs.evolve(rig.short(2), logprobs=3))
            await watch.finished(1, 2)
            assert watch[1].tokens == watch[2].tokens
            assert watch[1].logprobs == pytest.approx(watch[2].logprobs, abs=1e-4)
            assert all(token == PAD_ID for top in watch[1].tops for token, _ in top)

    async def test_the_urgent_come_first_and_the_earlier_among_equals(self, rig: EngineRig) -> None:
        """One slot is free at a time; the siblings of a call go in together."""
        async with running(rig) as watch:
            for key in range(4):
                rig.port.submit(rig.endless(key))
            await watch.until(lambda: all(watch[key].accepted for key in range(4)))
            calls = [(10, 1), (20, 0), (30, 1), (40, -(2**31)), (50, 0), (60, 2**31 - 1)]
            for group, priority in calls:
                for choice in range(2):
                    sibling = rig.short(group + choice)
                    sibling.group, sibling.choice, sibling.priority = group, choice, priority
                    rig.port.submit(sibling)
            rig.port.abort([0])
            keys = [group + choice for group, _ in calls for choice in range(2)]
            await watch.finished(*keys)
            ended = [
                key
                for frame in watch.log
                for key, finish in zip(frame.key, frame.finish, strict=True)
                if finish and key in keys
            ]
            assert ended == [40, 41, 20, 21, 50, 51, 10, 11, 30, 31, 60, 61]
            assert not any(watch[key].finish for key in (1, 2, 3)), "who runs is left alone"

    async def test_a_salt_is_taken_and_changes_nothing_that_is_said(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            rig.port.submit(rig.short(1))
            rig.port.submit(attrs.evolve(rig.short(2), cache_salt=b"tenant"))
            await watch.finished(1, 2)
            assert watch[1].tokens == watch[2].tokens
            assert watch[2].finish is watch[1].finish

    async def test_gauges_count_who_runs_and_who_waits(self, rig: EngineRig) -> None:
        async with running(rig) as watch:
            for key in range(7):
                rig.port.submit(rig.endless(key))
            await watch.until(lambda: bool(watch.log) and load(watch) == (4, 3))
            rig.port.abort([1, 6])
            await watch.finished(1, 6)
            await watch.until(lambda: load(watch) == (4, 1))
            rig.port.abort(range(7))
            await watch.finished(*range(7))
            assert load(watch) == (0, 0)

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
