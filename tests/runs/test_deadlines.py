"""Time limits: who is late is late in time, and nobody before; the clock is an input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import DeadlinePassed
from antiphon.runs.deadlines import Deadlines
from antiphon.runs.fanout import Fanout
from antiphon.runs.run import Run
from runs.scripted import NOW, Stage, chunks

SECOND_NS = 1_000_000_000
STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "forget", "late"]), st.integers(0, 4), st.integers(0, 30))
)


@given(STEPS)
def test_the_late_ones_are_those_whose_time_is_over(
    steps: list[tuple[str, int, int]],
) -> None:
    names = ["a", "b", "c", "d", "e"]
    deadlines: Deadlines[str] = Deadlines(50)
    model: dict[str, int] = {}
    now = 0
    for what, which, passed in steps:
        now += passed
        name = names[which]
        if what == "start":
            deadlines.start(name, now)
            model[name] = now + 50
        elif what == "forget":
            deadlines.forget(name)
            model.pop(name, None)
        else:
            late = {name for name, due in model.items() if due <= now}
            assert set(deadlines.late(now)) == late
            model = {name: due for name, due in model.items() if name not in late}
        assert deadlines.next_ns == min(model.values(), default=None)


def test_no_limit_watches_nobody() -> None:
    deadlines: Deadlines[str] = Deadlines(0)
    deadlines.start("a", 0)
    assert deadlines.next_ns is None
    assert deadlines.late(10**18) == []


class Timed(Stage):
    """A stage with a time limit of ten seconds and a clock that the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.fanout = Fanout(
            self.engine,
            wall_s=lambda: NOW,
            monotonic_ns=lambda: int(self.now_s * SECOND_NS),
            timeout_s=10,
        )

    def ended_at(self, now_s: float, run: Run) -> bool:
        """Whether the run is over once it is that late."""
        self.now_s = now_s
        self.fanout.expire()
        return run.ended


async def test_the_limit_counts_from_the_acceptance() -> None:
    stage = Timed()
    run = stage.open()
    assert not stage.ended_at(9, run)
    stage.accept(run)
    assert not stage.ended_at(18.9, run)
    assert stage.ended_at(19, run)
    assert stage.engine.aborted == [run.choices[0].key]
    assert "time limit" in chunks(run)[-1]["error"]["message"]
    with pytest.raises(DeadlinePassed):
        await run.finished()


async def test_a_request_that_is_never_accepted_is_refused_in_time() -> None:
    stage = Timed()
    run = stage.open()
    assert not stage.ended_at(9.9, run)
    assert stage.ended_at(10, run)
    with pytest.raises(DeadlinePassed):
        await run.opened()
    assert run.frames == []
    assert stage.fanout.running == 0


def test_a_run_that_has_ended_is_not_watched() -> None:
    stage = Timed()
    run = stage.open()
    stage.accept(run)
    stage.fanout.cancel(run)
    frames = len(run.frames)
    assert stage.ended_at(1000, run)
    assert len(run.frames) == frames
    assert len(stage.engine.aborted) == 1
