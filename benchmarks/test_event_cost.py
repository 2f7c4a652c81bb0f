"""CPU cost of one streamed token, from a step frame to SSE bytes, beside ``json.dumps`` of it.

Not a socket in sight: fanout, detokenizer, segmenter, machine, log and projection only. And what a
token costs in memory while its stream runs.
"""

from __future__ import annotations

import json
import tracemalloc
from array import array
from collections.abc import Callable, Iterator

import pytest
from benchmarks.ratios import beside
from pytest_benchmark.fixture import BenchmarkFixture

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import Gauges, StepFrame
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.answers import Answer, chat_answer, responses_answer
from antiphon.runs.choice import Choice
from antiphon.runs.run import Run
from responsory.commands import Accept
from responsory.segments import Segmenter
from runs.scripted import Stage

STREAMS, STEPS = 128, 40
TAIL = "01a22cb0bbea71b8be094da1c26e{:04x}"
LETTERS = b"etaoinshrdlu"


def chat() -> Answer:
    return chat_answer(stream=True, choices=1)


def responses() -> Answer:
    return responses_answer(stream=True)


def opened(answer: Callable[[], Answer]) -> tuple[Stage, list[Run]]:
    made = Stage()
    runs = [made.open(answer(), tail=TAIL.format(at)) for at in range(STREAMS)]
    for run in runs:
        made.accept(run)

    def first(frame: FrameBuilder) -> None:
        for run in runs:
            frame.row(run.choices[0].key, LETTERS[:1])

    made.step(first)  # it opens the item of each stream; the tokens after it are measured
    for run in runs:
        run.frames.clear()
    return made, runs


def steps(runs: list[Run]) -> Iterator[StepFrame]:
    for step in range(STEPS):
        builder = FrameBuilder(step)
        for run in runs:
            builder.row(run.choices[0].key, LETTERS[step % len(LETTERS) :][:1])
        yield builder.build(step, Gauges())


def play(made: Stage, frames: list[StepFrame]) -> None:
    for frame in frames:
        made.fanout.step(frame)


@pytest.mark.benchmark(
    group=f"{STREAMS} streams, one token each per step, beside json.dumps of the same frames"
)
@pytest.mark.parametrize(("answer", "bar"), [(chat, 0.75), (responses, 0.9)])
def test_step(benchmark: BenchmarkFixture, answer: Callable[[], Answer], bar: float) -> None:
    def setup() -> tuple[Stage, list[StepFrame]]:
        made, runs = opened(answer)
        return made, [*steps(runs)]

    made, runs = opened(answer)
    play(made, [*steps(runs)])
    bodies = [json.loads(frame.partition(b"data: ")[2]) for run in runs for frame in run.frames]
    assert len(bodies) == STREAMS * STEPS

    def dump() -> None:
        for body in bodies:
            f"data: {json.dumps(body)}\n\n".encode()

    benchmark.extra_info["events"] = STREAMS * STEPS
    beside(benchmark, play, dump, setup=setup, bar=bar)


TOKENS = 4096
WORDS = Detokenizer([f" w{at:03x}".encode() for at in range(TOKENS)])


@pytest.mark.parametrize(("keep_deltas", "most"), [(True, 140), (False, 8)])
def test_memory_of_a_running_stream(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], keep_deltas: bool, most: int
) -> None:
    """Bytes that a token of five characters costs a choice; frames are its readers' business."""

    def choice() -> Choice:
        made = Choice(
            key=1,
            index=0,
            prompt=array("I", [1]),
            detokenizer=WORDS.fresh(),
            segmenter=Segmenter(),
            logprobs=False,
            stop_ids=frozenset(),
            keep_deltas=keep_deltas,
        )
        made.accept(Accept("r1", 1, echo={"model": "m"}))
        return made

    def stream(choice: Choice) -> None:
        for token in range(TOKENS):
            if not choice.plain(token):
                builder = FrameBuilder(token)
                builder.row(1, [token])
                choice.advance(builder.build(token, Gauges()), 0, 0, 9)
            choice.drain()

    stream(choice())  # the texts of tokens belong to the model, and are made once
    measured = choice()
    tracemalloc.start()
    stream(measured)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    benchmark.extra_info["bytes"] = size / TOKENS
    benchmark.pedantic(  # type: ignore[no-untyped-call]  # untyped there
        stream, setup=lambda: ((choice(),), {}), rounds=3
    )
    what = "with" if keep_deltas else "without"
    with capsys.disabled():
        print(f"\na stream, log {what} deltas: {size / TOKENS:.1f} bytes a token (at most {most})")
    assert size < most * TOKENS
