"""Whatever fails inside the loop, and wherever, no key is left without its terminal row."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan, nan
from typing import Any

import attrs
import pytest

from antiphon.engines.port import PAD_ID, EngineError, EngineInfo, EngineRequest, Finish, StepFrame
from antiphon.engines.torch.admission import CAPABILITIES
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.grammar.compiler import Compiler
from antiphon.engines.torch.inbox import Abort, Drain, Inbox, Submit
from antiphon.engines.torch.loop import EngineLoop, StepRunner
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.step import Step
from engines.frame_watch import FrameWatch
from engines.torch.harness import no_frames
from engines.torch.requests import a_request

PAGES = 32


@attrs.define
class CountingLaunch:
    """A step of which it is known already what it draws."""

    draws: Drawn

    def drawn(self) -> Drawn:
        return self.draws


@attrs.define
class CountingRunner:
    """Draws the id 7 for everybody; ``draws`` says what comes of it in each step."""

    draws: Callable[[int], Drawn] = lambda rows: Drawn([7] * rows)

    def launch(self, step: Step) -> CountingLaunch:
        return CountingLaunch(self.draws(len(step.drawing)))


@attrs.define
class Diary:
    """A runner and its launches that note when they are called."""

    entries: list[str] = attrs.field(factory=list)
    number: int = 0
    rows: int = 0

    def launch(self, step: Step) -> Diary:
        keys = ",".join(str(chunk.sequence.key) for chunk in step.chunks)
        self.entries.append(f"launch {step.number}: {keys}")
        return attrs.evolve(self, number=step.number, rows=len(step.drawing))

    def drawn(self) -> Drawn:
        self.entries.append(f"book {self.number}")
        return Drawn([7] * self.rows)


@attrs.define
class Stage:
    """A loop that the test itself runs, and what its frames said."""

    loop: EngineLoop
    watch: FrameWatch

    def submit(self, *requests: EngineRequest) -> None:
        for request in requests:
            self.loop.inbox.put(Submit(request))

    def run(self) -> None:
        self.loop.inbox.put(Drain())
        self.loop.run()


def a_stage(
    runner: StepRunner,
    emit: Callable[[StepFrame], None] | None = None,
    depth: int = 1,
    compiler: Compiler | None = None,
) -> Stage:
    info = EngineInfo(
        name="torch",
        model_id="m",
        vocab_size=100,
        context_length=PAGES * PAGE_SIZE,
        eos_ids=frozenset(),
        max_running=4,
        page_size=PAGE_SIZE,
        kv_pages=PAGES,
        dtype="none",
        device="none",
        capabilities=CAPABILITIES,
    )
    scheduler = Scheduler(PagePool(PAGES), max_running=4, max_waiting=4, step_tokens=64)
    watch = FrameWatch(no_frames())
    loop = EngineLoop(info, scheduler, runner, Inbox(), emit or watch.read, depth, compiler)
    return Stage(loop, watch)


def ends(stage: Stage) -> dict[int, tuple[Finish, str | None]]:
    return {
        key: (story.finish, None if story.error is None else story.error.code)
        for key, story in stage.watch.stories.items()
    }


FAILED = (Finish.ERROR, "engine_failed")
BOTH = pytest.mark.parametrize("depth", [1, 2])


@BOTH
def test_a_loop_that_nothing_disturbs(depth: int) -> None:
    stage = a_stage(CountingRunner(), depth=depth)
    stage.submit(a_request(1, max_tokens=3), a_request(2, [1] * 40, max_tokens=2))
    stage.run()
    assert ends(stage) == {1: (Finish.LENGTH, None), 2: (Finish.LENGTH, None)}
    assert stage.watch[1].tokens == [7, 7, 7]


def test_the_frame_of_an_abort_counts_who_came_in_for_it() -> None:
    """Its successor may read a long prompt before any other frame is made."""
    stage = a_stage(CountingRunner())
    stage.submit(*(a_request(key) for key in range(6)))
    stage.loop.turn()
    stage.loop.inbox.put(Abort((1,)))
    stage.loop.turn()
    counts = [
        (frame.gauges.running, frame.gauges.waiting)
        for frame in stage.watch.log
        if Finish.ABORT in frame.finish
    ]
    assert counts == [(4, 1)]


def test_the_frame_of_an_end_counts_who_comes_next() -> None:
    stage = a_stage(CountingRunner())
    stage.submit(*(a_request(key, max_tokens=1 if key == 0 else 9) for key in range(6)))
    stage.loop.turn()
    last = stage.watch.log[-1]
    assert list(last.finish) == [Finish.LENGTH, Finish.NONE, Finish.NONE, Finish.NONE]
    assert (last.gauges.running, last.gauges.waiting) == (4, 1)


@BOTH
def test_a_failure_after_the_step_was_booked_leaves_nobody_out(
    caplog: pytest.LogCaptureFixture, depth: int
) -> None:
    """Both keys ended in the scheduler before the rows of the step could not be written."""
    broken: Any = ["no number"]
    stage = a_stage(
        CountingRunner(lambda rows: Drawn([7] * rows, logprob=broken * rows)), depth=depth
    )
    stage.submit(a_request(1, max_tokens=1), a_request(2, max_tokens=1))
    stage.run()
    assert not stage.loop.scheduler
    assert ends(stage) == {1: FAILED, 2: FAILED}
    assert "the engine failed" in caplog.text


@BOTH
def test_a_failure_between_commands_leaves_nobody_out(depth: int) -> None:
    """Refused, aborted and accepted rows are in the frame that is lost; one command is unread."""
    stage = a_stage(CountingRunner(), depth=depth)
    broken: Any = None
    stage.submit(a_request(1), a_request(2, []), a_request(3))
    stage.loop.inbox.put(Abort((3,)))
    stage.submit(attrs.evolve(a_request(4), prompt=broken), a_request(5))
    stage.run()
    assert ends(stage) == dict.fromkeys(range(1, 6), FAILED)


@BOTH
def test_a_frame_that_cannot_be_sent_settles_nothing(depth: int) -> None:
    sent = 0

    def emit(frame: StepFrame) -> None:
        nonlocal sent
        sent += 1
        if sent == 3:
            raise RuntimeError("the pipe is gone")
        stage.watch.read(frame)

    stage = a_stage(CountingRunner(), emit, depth)
    stage.submit(a_request(1, max_tokens=1), a_request(2, max_tokens=2))
    stage.run()
    assert ends(stage) == {1: (Finish.LENGTH, None), 2: FAILED}


def test_keys_that_ended_are_not_ended_again() -> None:
    draws = iter([Drawn([7])])
    stage = a_stage(CountingRunner(lambda rows: next(draws)))
    stage.submit(a_request(1, max_tokens=1))
    stage.loop.turn()
    stage.submit(a_request(2))
    stage.run()
    assert ends(stage) == {1: (Finish.LENGTH, None), 2: FAILED}


def test_at_depth_two_a_step_is_launched_before_the_last_one_is_booked() -> None:
    diary = Diary()
    stage = a_stage(diary, depth=2)
    stage.submit(a_request(1, max_tokens=3))
    stage.run()
    # The third draw is known to be the last without its id: no step is launched in vain.
    assert diary.entries == [
        "launch 1: 1", "launch 2: 1", "book 1", "launch 3: 1", "book 2", "book 3"
    ]  # fmt: skip
    assert stage.watch[1].tokens == [7, 7, 7]


def test_what_a_step_in_flight_draws_for_one_that_has_ended_is_dropped() -> None:
    diary = Diary()
    stage = a_stage(diary, depth=2)
    stage.submit(a_request(1, stop_ids=(7,)), a_request(2, max_tokens=3))
    stage.loop.turn()
    stage.loop.turn()
    assert diary.entries == ["launch 1: 1,2", "launch 2: 1,2", "book 1"]
    assert ends(stage)[1] == (Finish.STOP, None)
    scheduler = stage.loop.scheduler
    assert (scheduler.holdings.free_slots, scheduler.pool.free) == (2, PAGES - 2)
    stage.loop.turn()
    assert diary.entries[3:] == ["launch 3: 2", "book 2"]
    assert (scheduler.holdings.free_slots, scheduler.pool.free) == (3, PAGES - 1)
    stage.run()
    assert (stage.watch[1].tokens, stage.watch[2].tokens) == ([], [7, 7, 7])


@BOTH
def test_an_abort_is_honoured_before_the_next_step(depth: int) -> None:
    diary = Diary()
    stage = a_stage(diary, depth=depth)
    stage.submit(a_request(1), a_request(2))
    stage.loop.turn()
    stage.loop.inbox.put(Abort((1,)))
    stage.loop.turn()
    assert ends(stage)[1] == (Finish.ABORT, None)
    stage.run()
    launches = [entry for entry in diary.entries if entry.startswith("launch")]
    assert launches[0] == "launch 1: 1,2"
    assert all(entry.endswith(": 2") for entry in launches[1:])
    assert len(stage.watch[2].tokens) == 8


@BOTH
def test_an_id_that_cannot_be_drawn_ends_its_request_alone(depth: int) -> None:
    error = EngineError(code="grammar_invalid", message="nothing fits")

    def draws(rows: int) -> Drawn:
        return Drawn([7] * rows, refused={0: error} if rows == 2 else {})

    stage = a_stage(CountingRunner(draws), depth=depth)
    stage.submit(a_request(1), a_request(2, max_tokens=2))
    stage.run()
    assert ends(stage) == {1: (Finish.ERROR, "grammar_invalid"), 2: (Finish.LENGTH, None)}
    assert (stage.watch[1].tokens, stage.watch[2].tokens) == ([], [7, 7])
    assert stage.loop.scheduler.pool.free == PAGES


def test_logprobs_are_those_of_the_tokens_that_are_said() -> None:
    """The second of three rows ends on its id, which is not part of its output."""

    def draws(rows: int) -> Drawn:
        return Drawn(
            [5, 6, 7],
            [-0.5, -0.25, nan],
            2,
            [5, 8, 6, 9, PAD_ID, PAD_ID],
            [-0.5, -1, -0.25, -2, -inf, -inf],
        )

    stage = a_stage(CountingRunner(draws))
    stage.submit(*(a_request(key, max_tokens=1, stop_ids=(6,), logprobs=2) for key in range(3)))
    stage.run()
    assert [stage.watch[key].tokens for key in range(3)] == [[5], [], [7]]
    assert [stage.watch[key].logprobs[:1] for key in range(2)] == [[-0.5], []]
    assert isnan(stage.watch[2].logprobs[0])
    assert [stage.watch[key].tops for key in range(3)] == [
        [[(5, -0.5), (8, -1)]], [], [[(PAD_ID, -inf), (PAD_ID, -inf)]]
    ]  # fmt: skip


@BOTH
def test_the_gauges_tell_what_can_be_found_again(depth: int) -> None:
    stage = a_stage(CountingRunner(), depth=depth)
    stage.submit(a_request(1, [5] * 40, max_tokens=1))
    stage.run()
    gauges = stage.watch.log[-1].gauges
    assert (gauges.pages_free, gauges.pages_cached) == (PAGES, 2)
