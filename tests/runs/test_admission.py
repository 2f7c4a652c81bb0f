"""How many sequences are let in, and what those hear that are not."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon.engines.port import Finish
from antiphon.errors import InvalidRequest, Overloaded
from antiphon.runs.admission import LONGEST_S, SECOND_NS, Admission
from antiphon.runs.fanout import Fanout
from antiphon.runs.run import Run
from runs.scripted import Stage, stream, unary

MOST = 5
PROMPT = array("I", [0] * 5)


def refusal(admission: Admission, taken: int, more: int, now_ns: int = 0) -> Overloaded:
    with pytest.raises(Overloaded) as caught:
        admission.check(taken, more, now_ns)
    return caught.value


def test_without_a_limit_everything_is_let_in() -> None:
    Admission().check(10**9, 10**9, 0)


def test_what_fits_is_let_in_and_one_more_is_not() -> None:
    admission = Admission(MOST)
    admission.check(0, MOST, 0)
    admission.check(3, 2, 0)
    refusal(admission, 3, 3)


def test_more_than_there_is_ever_room_for_is_no_matter_of_time() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Admission(MOST).check(0, MOST + 1, 0)
    assert caught.value.param == "n"


def test_a_prompt_in_the_making_keeps_a_place() -> None:
    admission = Admission(MOST)
    with admission.coming():
        refusal(admission, 4, 1)
        admission.check(3, 1, 0)
    admission.check(4, 1, 0)


@given(st.integers(1, 20), st.floats(0.05, 20), st.integers(1, 200))
def test_the_wait_is_what_it_takes_at_the_pace_so_far(
    excess: int, seconds: float, ended: int
) -> None:
    """One sequence ends every so many seconds."""
    admission = Admission(MOST)
    pace_ns = int(seconds * SECOND_NS)
    admission.began(0, 0)
    for number in range(1, ended + 1):
        admission.ended(1, number * pace_ns)
    told = refusal(admission, MOST, min(excess, MOST), ended * pace_ns)
    places = min(excess, MOST)
    assert told.wait_s == pytest.approx(min(max(places * seconds, 1.0), LONGEST_S), rel=0.01)
    assert int(told.headers["retry-after"]) >= 1


def test_nothing_has_ended_yet() -> None:
    admission = Admission(MOST)
    admission.began(0, 100 * SECOND_NS)
    assert refusal(admission, MOST, 1, 110 * SECOND_NS).wait_s == 10
    assert refusal(admission, MOST, 1, 100 * SECOND_NS).wait_s == 1


def test_a_pause_is_not_part_of_the_pace() -> None:
    admission = Admission(MOST)
    admission.began(0, 0)
    admission.ended(1, SECOND_NS)
    admission.began(0, 1000 * SECOND_NS)
    admission.ended(1, 1003 * SECOND_NS)
    assert refusal(admission, MOST, 1, 1003 * SECOND_NS).wait_s == 3


class Load(RuleBasedStateMachine):
    """Calls of any size come, end in any way, or are left by their clients."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.stage.fanout = Fanout(
            self.stage.engine,
            wall_s=lambda: 0,
            monotonic_ns=lambda: 0,
            admission=Admission(MOST),
        )
        self.open: list[Run] = []
        self.tails = 0

    @property
    def sequences(self) -> int:
        return sum(not choice.ended for run in self.open for choice in run.choices)

    @rule(n=st.integers(1, 4), prompts=st.integers(1, 3), streams=st.booleans())
    def come(self, n: int, prompts: int, streams: bool) -> None:
        asked, before = n * prompts, len(self.stage.engine.submitted)
        self.tails += 1
        plan: Callable[[], Run] = lambda: self.stage.open(  # noqa: E731
            stream(asked) if streams else unary(asked),
            tail=f"r{self.tails}",
            n=n,
            prompts=[PROMPT] * prompts,
        )
        if asked > MOST:
            with pytest.raises(InvalidRequest):
                plan()
        elif self.sequences + asked > MOST:
            with pytest.raises(Overloaded):
                plan()
        else:
            run = plan()
            self.stage.accept(run)
            self.open.append(run)
            return
        assert len(self.stage.engine.submitted) == before

    @precondition(lambda self: self.open)
    @rule(data=st.data(), finish=st.sampled_from([Finish.STOP, Finish.LENGTH, Finish.ERROR]))
    def end(self, data: st.DataObject, finish: Finish) -> None:
        run = data.draw(st.sampled_from(self.open))
        key = next(choice.key for choice in run.choices if not choice.ended)
        if finish is Finish.ERROR:
            finish = Finish.ABORT  # which nobody asked for: a failure of the engine
        self.stage.step(lambda frame: frame.row(key, finish=finish))
        self.open = [each for each in self.open if not each.ended]

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        run = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        self.stage.fanout.cancel(run)

    @invariant()
    def never_more(self) -> None:
        assert sum(self.stage.fanout.load) == self.stage.fanout.running == self.sequences <= MOST


TestLoad = Load.TestCase
TestLoad.settings = settings(max_examples=50, stateful_step_count=30)
