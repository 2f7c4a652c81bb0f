"""The engine over a clock that stands still: which rows share a frame, and when."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import anyio
import attrs
import pytest

from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineStartError, Finish, GrammarSpec, StepFrame
from antiphon.engines.recording import Recording
from antiphon.engines.replay import ReplayEngine
from antiphon.engines.replay_schedule import CONTEXT_LENGTH
from engines.replay.builders import MS, ManualClock, all_rows, recording, request, rows, said

STOP = ["finish", 0, "stop"]
NONE, HELD = Finish.NONE, ["hold"]
BROKEN = ["finish", 0, "error", {"code": "engine_failed", "message": "m"}]
ABC = recording(*said("a", "b", "c"), STOP)


@attrs.define
class Stage:
    """A started engine, its clock, and all frames it has given so far."""

    engine: ReplayEngine
    clock: ManualClock
    frames: list[StepFrame] = attrs.field(factory=list)

    async def advance(self, ms: float = 0) -> list[StepFrame]:
        """The frames of the next ``ms`` milliseconds."""
        seen = len(self.frames)
        await self.clock.advance(round(ms * MS))
        return self.frames[seen:]


@asynccontextmanager
async def on_stage(
    made: Recording, pace: Pace = Pace.RECORDED, max_running: int = 8, max_waiting: int = 8
) -> AsyncIterator[Stage]:
    clock = ManualClock()
    engine = ReplayEngine(
        {made.name: made}, pace=pace, max_running=max_running, max_waiting=max_waiting, clock=clock
    )
    stage = Stage(engine, clock)
    await engine.start()

    async def consume() -> None:
        async for frame in engine.frames():
            stage.frames.append(frame)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(consume)
        yield stage
        await engine.stop(0)


def keys(frames: Sequence[StepFrame]) -> list[list[int]]:
    return [list(frame.key) for frame in frames]


async def test_info_fits_the_wire() -> None:
    async with on_stage(ABC) as stage:
        info = await ReplayEngine({ABC.name: ABC}, clock=stage.clock).start()
    assert info.vocab_size == 2**32 - 1
    assert info.context_length == CONTEXT_LENGTH
    assert "prompt_logprobs" not in info.capabilities
    assert {"seed", "logprobs", "grammar", "logit_bias"} <= info.capabilities


async def test_nothing_to_play_does_not_start() -> None:
    with pytest.raises(EngineStartError, match="no recordings"):
        await ReplayEngine({}).start()


async def test_accepted_at_once_and_played_at_the_recorded_times() -> None:
    async with on_stage(ABC) as stage:
        stage.engine.submit(request())
        (accept,) = await stage.advance()
        assert rows(accept) == [(1, [], NONE, None)]
        assert list(accept.cached) == [-1]
        assert await stage.advance(9) == []
        (first,) = await stage.advance(1)
        assert rows(first) == [(1, [0], NONE, "a")]
        assert list(first.cached) == [0]
        assert first.t_ns == 10 * MS
        assert all_rows(await stage.advance(20)) == [
            (1, [1], NONE, "b"),
            (1, [2], Finish.STOP, "c"),
        ]


async def test_steps_that_are_due_together_share_a_frame() -> None:
    async with on_stage(ABC) as stage:
        for key in (1, 2, 3):
            stage.engine.submit(request(key))
        assert keys(await stage.advance()) == [[1, 2, 3]]
        assert keys(await stage.advance(10)) == [[1, 2, 3]]


async def test_a_late_tick_gives_one_step_a_frame_and_loses_none() -> None:
    async with on_stage(ABC) as stage:
        stage.engine.submit(request(1))
        await stage.advance(5)
        stage.engine.submit(request(2))
        frames = await stage.advance(1000)
        assert keys(frames) == [[2], [1, 2], [1, 2], [1, 2]]
        assert [row[3] for row in all_rows(frames) if row[0] == 1] == ["a", "b", "c"]
        assert [row[3] for row in all_rows(frames) if row[0] == 2] == [None, "a", "b", "c"]


async def test_flat_out_every_request_moves_in_every_frame() -> None:
    async with on_stage(ABC, Pace.FULL) as stage:
        stage.engine.submit(request(1))
        stage.engine.submit(request(2))
        assert keys(await stage.advance()) == [[1, 2]] * 4


async def test_flat_out_lets_others_run_between_frames() -> None:
    made = recording(*said(*("x" * 50)), STOP)
    async with on_stage(made, Pace.FULL) as stage:
        stage.engine.submit(request())
        seen = [len(stage.frames)]
        while len(stage.frames) < 51:
            await anyio.lowlevel.checkpoint()
            seen.append(len(stage.frames))
        assert max(after - before for before, after in pairwise(seen)) <= 2


async def test_a_fixed_pace_moves_all_requests_on_one_grid() -> None:
    async with on_stage(ABC, Pace.parse("2x20ms")) as stage:
        stage.engine.submit(request(1))
        await stage.advance(7)
        stage.engine.submit(request(2))
        assert keys(await stage.advance()) == [[2]]
        assert await stage.advance(12) == []
        (frame,) = await stage.advance(1)
        assert rows(frame) == [(1, [0, 1], NONE, "ab"), (2, [0, 1], NONE, "ab")]
        (frame,) = await stage.advance(20)
        assert rows(frame) == [(1, [2], Finish.STOP, "c"), (2, [2], Finish.STOP, "c")]


async def test_each_choice_plays_its_own_and_further_ones_start_over() -> None:
    made = recording(*said("a"), *said("b", choice=1), STOP, ["finish", 1, "length"])
    async with on_stage(made, Pace.FULL) as stage:
        for choice in range(3):
            stage.engine.submit(request(choice, choice=choice))
        assert [row[2:] for row in all_rows(await stage.advance())[3:]] == [
            (Finish.STOP, "a"),
            (Finish.LENGTH, "b"),
            (Finish.STOP, "a"),
        ]


async def test_an_unknown_model_is_unsupported() -> None:
    async with on_stage(ABC) as stage:
        stage.engine.submit(request(model="plain/other"))
        (frame,) = await stage.advance()
        assert rows(frame) == [(1, [], Finish.ERROR, None)]
        assert frame.error[0].code == "unsupported"
        assert "plain/other" in frame.error[0].message


async def test_a_prompt_must_leave_room_for_a_token() -> None:
    async with on_stage(recording(*said("a", "b"), STOP), Pace.FULL) as stage:
        stage.engine.submit(request(1, prompt=array("I", bytes(4 * CONTEXT_LENGTH))))
        (frame,) = await stage.advance()
        assert frame.error[0].code == "context_length_exceeded"
        stage.engine.submit(request(2, prompt=array("I", bytes(4 * (CONTEXT_LENGTH - 1)))))
        assert all_rows(await stage.advance())[1:] == [(2, [0], Finish.LENGTH, "a")]


@pytest.mark.parametrize("pace", [Pace.RECORDED, Pace.FULL, Pace.parse("4x20ms")], ids=str)
@pytest.mark.parametrize(
    "made", [ABC, recording(HELD), recording(BROKEN)], ids=["abc", "held", "broken"]
)
async def test_no_token_asked_for_is_an_end_at_once(pace: Pace, made: Recording) -> None:
    """Whatever was recorded, and before the first recorded moment."""
    async with on_stage(made, pace) as stage:
        stage.engine.submit(request(max_tokens=0))
        assert all_rows(await stage.advance()) == [
            (1, [], NONE, None),
            (1, [], Finish.LENGTH, None),
        ]
        assert stage.clock.ns == 0


async def test_what_a_prompt_scored_was_not_recorded() -> None:
    async with on_stage(ABC, Pace.FULL) as stage:
        stage.engine.submit(request(prompt_logprobs=0))
        (frame,) = await stage.advance()
        assert rows(frame) == [(1, [], Finish.ERROR, None)]
        assert frame.error[0].code == "unsupported"
        assert "prompt_logprobs" in frame.error[0].message


async def test_a_grammar_is_taken_and_the_recording_played_as_it_is() -> None:
    async with on_stage(ABC, Pace.FULL) as stage:
        stage.engine.submit(request(grammar=GrammarSpec(kind="regex", text="[0-9]+")))
        assert [row[3] for row in all_rows(await stage.advance())] == [None, "a", "b", "c"]


async def test_gauges_of_a_frame_count_all_that_was_submitted_before_it() -> None:
    made = recording(*said("a"), HELD)
    async with on_stage(made, max_running=2) as stage:
        for key in (1, 2, 3, 4):
            stage.engine.submit(request(key))
        (frame,) = await stage.advance()
        assert (frame.gauges.running, frame.gauges.waiting) == (2, 2)
        stage.engine.submit(request(5))
        assert await stage.advance() == [], "nothing moves, so nobody hears of the fifth"
        stage.engine.abort([1])
        (frame,) = await stage.advance()
        assert rows(frame) == [(1, [], Finish.ABORT, None), (3, [], NONE, None)]
        assert (frame.gauges.running, frame.gauges.waiting) == (2, 2)


async def test_more_than_max_running_wait_and_more_than_max_waiting_are_refused() -> None:
    async with on_stage(ABC, max_running=1, max_waiting=1) as stage:
        for key in (1, 2, 3):
            stage.engine.submit(request(key))
        (frame,) = await stage.advance()
        assert rows(frame) == [(3, [], Finish.ERROR, None), (1, [], NONE, None)]
        assert frame.error[0].code == "engine_overloaded"
        assert (frame.gauges.running, frame.gauges.waiting) == (1, 1)
        last = (await stage.advance(30))[-1]
        assert rows(last) == [(1, [2], Finish.STOP, "c"), (2, [], NONE, None)]


async def test_without_a_queue_a_call_that_can_begin_is_taken_whole() -> None:
    async with on_stage(ABC, max_running=1, max_waiting=0) as stage:
        for key, group in ((1, 1), (2, 1), (3, 3), (4, 3)):
            stage.engine.submit(request(key, group=group))
        (frame,) = await stage.advance()
        assert [row[:3] for row in rows(frame)] == [
            (3, [], Finish.ERROR),
            (4, [], Finish.ERROR),
            (1, [], NONE),
        ]
        await stage.advance(30)
        assert all_rows(await stage.advance(30))[-1] == (2, [2], Finish.STOP, "c")


async def test_abort_while_waiting_running_and_held() -> None:
    made = recording(*said("a"), HELD)
    async with on_stage(made, max_running=2) as stage:
        for key in (1, 2, 3):
            stage.engine.submit(request(key))
        await stage.advance()
        stage.engine.abort([3, 1, 99])
        stage.engine.abort([1])
        assert all_rows(await stage.advance()) == [
            (3, [], Finish.ABORT, None),
            (1, [], Finish.ABORT, None),
        ]
        assert keys(await stage.advance(3_600_000)) == [[2]]
        stage.engine.abort([2])
        assert all_rows(await stage.advance()) == [(2, [], Finish.ABORT, None)]


async def test_a_key_that_is_open_cannot_be_taken_twice(caplog: pytest.LogCaptureFixture) -> None:
    async with on_stage(ABC, Pace.FULL) as stage:
        stage.engine.submit(request(1))
        stage.engine.submit(request(1, model="plain/other"))
        assert [row[2] for row in all_rows(await stage.advance())][-1] is Finish.STOP
    assert "reuses the open key 1" in caplog.text


async def test_stop_plays_on_for_its_grace_and_then_aborts() -> None:
    made = recording(*said("a"), HELD)
    async with on_stage(made) as stage:
        stage.engine.submit(request(1))
        await stage.advance()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.engine.stop, 0.5)
            await stage.advance()
            stage.engine.submit(request(2))
            (refused,) = await stage.advance()
            assert refused.error[0].code == "engine_overloaded"
            assert all_rows(await stage.advance(499)) == [(1, [0], NONE, "a")]
            assert all_rows(await stage.advance(1)) == [(1, [], Finish.ABORT, None)]


async def test_stop_ends_as_soon_as_nothing_is_open() -> None:
    async with on_stage(ABC) as stage:
        stage.engine.submit(request())
        await stage.advance()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.engine.stop, 3600)
            await stage.advance(30)
        assert stage.clock.ns == 30 * MS
        assert all_rows(stage.frames)[-1][2] is Finish.STOP


async def test_stop_before_start_ends_the_frames() -> None:
    engine = ReplayEngine({ABC.name: ABC})
    await engine.stop(0)
    assert [frame async for frame in engine.frames()] == []


async def test_frames_have_one_consumer() -> None:
    async with on_stage(ABC) as stage:
        await stage.advance()
        with pytest.raises(RuntimeError, match="one consumer"):
            stage.engine.frames()


async def test_steps_are_numbered_without_holes() -> None:
    async with on_stage(ABC, Pace.FULL) as stage:
        for key in range(5):
            stage.engine.submit(request(key))
            await stage.advance()
        assert [frame.step for frame in stage.frames] == list(range(len(stage.frames)))
