"""The core that stands in for vLLM's: what it reports, step by step, under a clock of our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from benchmarks.peers.vllm_steps import HEAD_S, PATIENCE_S, Job, Steps
from benchmarks.serving.words import SIZE
from hypothesis import given
from hypothesis import strategies as st

FIRST_WORD, STEP_S = 7, 0.01


class Output(SimpleNamespace):
    """A message of vLLM's, which is made with a request's id and tokens, or by fields."""

    def __init__(self, request_id: str = "", new_token_ids: Any = (), **fields: Any) -> None:
        super().__init__(request_id=request_id, new_token_ids=new_token_ids, **fields)
        self.finish_reason = None


@pytest.fixture(autouse=True, scope="module")
def vllm() -> Iterator[None]:
    """The names of vLLM that the steps are made of."""
    engine, stats = ModuleType("vllm.v1.engine"), ModuleType("vllm.v1.metrics.stats")
    kinds = SimpleNamespace(QUEUED=1, SCHEDULED=2)
    vars(engine).update(
        EngineCoreOutput=Output,
        EngineCoreOutputs=SimpleNamespace,
        EngineCoreEvent=lambda kind, at: (kind, at),
        EngineCoreEventType=kinds,
        FinishReason=SimpleNamespace(LENGTH="length"),
    )
    vars(stats).update(SchedulerStats=SimpleNamespace, PrefillStats=SimpleNamespace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, engine.__name__, engine)
        patch.setitem(sys.modules, stats.__name__, stats)
        yield


class Core:
    """Steps with a clock that is moved by hand."""

    def __init__(self, streams: int, step_us: int = round(STEP_S * 1e6)) -> None:
        self.now = 100.0
        job = Job("", 0, streams, step_us, 0, FIRST_WORD, "", "", "")
        self.steps = Steps(job, lambda: self.now)

    def ask(self, name: str, tokens: int) -> None:
        self.steps.add(
            SimpleNamespace(
                request_id=name,
                sampling_params=SimpleNamespace(max_tokens=tokens),
                prompt_token_ids=[1, 2, 3],
            )
        )

    def next(self) -> Any:
        """The step that comes next, however long it takes."""
        while (outputs := self.steps.step()) is None:
            wait = self.steps.wait()
            assert wait is not None
            self.now += wait
        return outputs


def test_streams_wait_for_one_another_but_not_for_ever() -> None:
    core = Core(streams=3)
    core.ask("a", 5)
    core.ask("b", 5)
    assert core.steps.step() is None
    core.now += PATIENCE_S - 0.001
    assert core.steps.step() is None
    core.ask("c", 5)
    assert [output.request_id for output in core.next().outputs] == ["a", "b", "c"]

    alone = Core(streams=3)
    alone.ask("a", 5)
    began = alone.now
    assert len(alone.next().outputs) == 1
    assert PATIENCE_S <= alone.now - began < PATIENCE_S + 0.01


@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(1, 5))
def test_each_stream_gets_its_tokens_one_a_step_and_only_so_many_run(
    asked: list[int], streams: int
) -> None:
    core = Core(streams)
    for place, tokens in enumerate(asked):
        core.ask(str(place), tokens)
    said: dict[str, list[int]] = {str(place): [] for place in range(len(asked))}
    finished: list[str] = []
    step = 0
    while len(finished) < len(asked):
        outputs = core.next()
        assert len(outputs.outputs) <= streams
        for output in outputs.outputs:
            assert output.new_token_ids == [FIRST_WORD + step]
            assert output.request_id not in finished
            assert hasattr(output, "prefill_stats") == (not said[output.request_id])
            said[output.request_id] += output.new_token_ids
        ended = {out.request_id for out in outputs.outputs if out.finish_reason == "length"}
        assert (outputs.finished_requests or set()) == ended
        finished += ended
        step += 1
    assert [len(said[str(place)]) for place in range(len(asked))] == asked
    assert core.steps.wait() is None


def test_a_step_that_is_late_is_not_made_up_for() -> None:
    core = Core(streams=1)
    core.ask("a", 100)
    core.next()
    core.now += HEAD_S + STEP_S
    assert core.steps.step() is not None
    assert core.steps.step() is None
    core.now += 10 * STEP_S
    assert core.steps.step() is not None
    assert core.steps.step() is None
    assert core.steps.wait() == pytest.approx(STEP_S)


def test_who_left_gets_nothing_more() -> None:
    core = Core(streams=2)
    core.ask("a", 100)
    core.ask("b", 100)
    core.next()
    core.steps.abort(["a", "nobody"])
    assert [output.request_id for output in core.next().outputs] == ["b"]
    core.ask("c", 1)
    core.steps.abort(["b", "c"])
    assert core.steps.wait() is None


def test_the_words_begin_anew_after_the_last() -> None:
    core = Core(streams=1, step_us=0)
    core.ask("a", SIZE + 1)
    tokens = [core.next().outputs[0].new_token_ids[0] for _ in range(SIZE + 1)]
    assert tokens == [*range(FIRST_WORD, FIRST_WORD + SIZE), FIRST_WORD]
