"""What every engine does with the options of a request, and what its gauges say."""

from __future__ import annotations

import attrs
import pytest

from antiphon.engines.port import PAD_ID, Capability, EngineRequest, Finish
from engines.frame_watch import FrameWatch
from engines.rig import EngineRig, load, running


class OptionsContract:
    """Inherited by the contract; ``rig`` is its fixture."""

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
