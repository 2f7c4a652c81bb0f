"""Whatever fails inside the loop, and wherever, no key is left without its terminal row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from antiphon.engines.port import EngineInfo, EngineRequest, Finish, StepFrame
from antiphon.engines.torch.admission import CAPABILITIES
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.inbox import Abort, Drain, Inbox, Submit
from antiphon.engines.torch.loop import EngineLoop
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
    runner: CountingRunner, emit: Callable[[StepFrame], None] | None = None, depth: int = 1
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
    loop = EngineLoop(info, scheduler, runner, Inbox(), emit or watch.read, depth)
    return Stage(loop, watch)


def ends(stage: Stage) -> dict[int, tuple[Finish, str | None]]:
    return {
        key: (story.finish, None if story.error is None else story.error.code)
        for key, story in stage.watch.stories.items()
    }


FAILED = (Finish.ERROR, "engine_failed")


def test_a_loop_that_nothing_disturbs() -> None:
    stage = a_stage(CountingRunner())
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


def test_a_failure_after_the_step_was_booked_leaves_nobody_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both keys ended in the scheduler before the rows of the step could not be written."""
    broken: Any = ["no number"]
    stage = a_stage(CountingRunner(lambda rows: Drawn([7] * rows, logprob=broken * rows)))
    stage.submit(a_request(1, max_tokens=1), a_request(2, max_tokens=1))
    stage.run()
    assert not stage.loop.scheduler
    assert ends(stage) == {1: FAILED, 2: FAILED}
    assert "the engine failed" in caplog.text


def test_a_failure_between_commands_leaves_nobody_out() -> None:
    """Refused, aborted and accepted rows are in the frame that is lost; one command is unread."""
    stage = a_stage(CountingRunner())
    broken: Any = None
    stage.submit(a_request(1), a_request(2, []), a_request(3))
    stage.loop.inbox.put(Abort((3,)))
    stage.submit(attrs.evolve(a_request(4), prompt=broken), a_request(5))
    stage.run()
    assert ends(stage) == dict.fromkeys(range(1, 6), FAILED)


def test_a_frame_that_cannot_be_sent_settles_nothing() -> None:
    sent = 0

    def emit(frame: StepFrame) -> None:
        nonlocal sent
        sent += 1
        if sent == 3:
            raise RuntimeError("the pipe is gone")
        stage.watch.read(frame)

    stage = a_stage(CountingRunner(), emit)
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
