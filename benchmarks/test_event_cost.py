"""CPU cost of one streamed token, from a step frame to SSE bytes, beside ``json.dumps`` of it.

Not a socket in sight: fanout, detokenizer, segmenter, machine, log and projection only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import Gauges, StepFrame
from antiphon.runs.answers import Answer, chat_answer, responses_answer
from runs.scripted import Stage

STREAMS, STEPS = 128, 40


def run_rounds(
    benchmark: BenchmarkFixture, work: Callable[..., None], setup: Callable[[], Any] | None
) -> None:
    """Twenty rounds, each on a stage of its own."""
    benchmark.pedantic(work, setup=setup, rounds=20)  # type: ignore[no-untyped-call]  # untyped there


def chat() -> Answer:
    return chat_answer(stream=True, choices=1, include_usage=False, logprobs=False)


def responses() -> Answer:
    return responses_answer(stream=True)


@pytest.mark.benchmark(group="128 streams, one token each per step")
@pytest.mark.parametrize("answer", [chat, responses])
def test_step(benchmark: BenchmarkFixture, answer: Callable[[], Answer]) -> None:
    def stage() -> tuple[tuple[Stage, list[StepFrame]], dict[str, Any]]:
        made = Stage()
        runs = [made.open(answer(), tail=f"r{i}") for i in range(STREAMS)]
        for run in runs:
            made.accept(run)
        frames = []
        for step in range(STEPS):
            builder = FrameBuilder(step)
            for run in runs:
                builder.row(run.choices[0].key, b"a")
            frames.append(builder.build(step, Gauges()))
        return (made, frames), {}

    def play(made: Stage, frames: list[StepFrame]) -> None:
        for frame in frames:
            made.fanout.step(frame)

    benchmark.extra_info["events"] = STREAMS * STEPS
    run_rounds(benchmark, play, stage)


@pytest.mark.benchmark(group="128 streams, one token each per step")
def test_json_dumps_of_the_same_frames(benchmark: BenchmarkFixture) -> None:
    frame = {
        "type": "response.output_text.delta",
        "sequence_number": 17,
        "item_id": "msg_01a22cb0bbea71b8be094da1c26e61e9_0",
        "output_index": 0,
        "content_index": 0,
        "delta": " there",
        "logprobs": [],
    }

    def dump() -> None:
        for _ in range(STREAMS * STEPS):
            f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode()

    run_rounds(benchmark, dump, None)
