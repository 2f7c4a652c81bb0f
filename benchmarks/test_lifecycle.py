"""The cost of a token in the lifecycle library, of a replay and of a kept log.

A token is measured from a piece of text to the bytes of its frame (segmenter, machine, log,
projection), beside ``json.dumps`` of that frame as a dict; a replay beside ``json.loads`` of the
frames.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from responsory import EventLog, Response, Usage
from responsory.commands import Accept, Command, Finish, Reasoning, Text
from responsory.events import Event
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.segments import FORMATS, Piece, Segmenter

TAIL = "01a22cb0bbea71b8be094da1c26e61e9"
TOKENS = 4096
EVENTS = 1_000_000

WORDS = [f" w{at % 997}" for at in range(TOKENS)]
STEPS = [[Piece(word, (at,))] for at, word in enumerate(WORDS)]

FRAME = {
    "type": "response.output_text.delta",
    "sequence_number": 1017,
    "item_id": f"msg_{TAIL}_0",
    "output_index": 0,
    "content_index": 0,
    "delta": " there",
    "logprobs": [],
}


class Stream(Protocol):
    def feed(self, choice: int, events: list[Event]) -> list[bytes]: ...


def rounds(
    benchmark: BenchmarkFixture,
    work: Callable[..., object],
    setup: Callable[[], Any] | None = None,
    count: int = 20,
) -> None:
    benchmark.pedantic(work, setup=setup, rounds=count)  # type: ignore[no-untyped-call]  # untyped there


# --- one token ----------------------------------------------------------------------------------

TOKEN = pytest.mark.benchmark(group=f"lifecycle: {TOKENS} tokens")


@TOKEN
@pytest.mark.usefixtures("baseline")
def test_json_dumps(benchmark: BenchmarkFixture) -> None:
    def dump() -> None:
        dumps = json.dumps
        for _ in range(TOKENS):
            dumps(FRAME)

    rounds(benchmark, dump)


STREAMS: dict[str, tuple[Callable[[], Stream], str, float | None]] = {
    "responses": (ResponsesStream, "plain", 0.6),
    "chat": (ChatStream, "plain", 0.8),
    "completions": (CompletionsStream, "plain", None),
    "responses of a think model": (ResponsesStream, "think", None),
}


@TOKEN
@pytest.mark.parametrize("name", STREAMS)
def test_token(benchmark: BenchmarkFixture, name: str) -> None:
    """Segment, machine, log and frame."""
    make, family, bar = STREAMS[name]

    def setup() -> tuple[tuple[object, ...], dict[str, object]]:
        machine, log, stream = Response(), EventLog(), make()
        events = machine.receive(Accept(TAIL, 1764500000, False, {"model": "tiny"}))
        log.extend(events)
        stream.feed(0, events)
        return (Segmenter(FORMATS[family]), machine, log, stream), {}

    def play(segmenter: Segmenter, machine: Response, log: EventLog, stream: Stream) -> None:
        read, receive, append, render = segmenter.feed, machine.receive, log.extend, stream.feed
        for pieces in STEPS:
            for segment in read(pieces):
                events = receive(segment)
                append(events)
                render(0, events)

    if bar is not None:
        benchmark.extra_info["at most"] = bar
    rounds(benchmark, play, setup)


# --- a replay -----------------------------------------------------------------------------------

REPLAY = pytest.mark.benchmark(group=f"lifecycle: replay of {EVENTS:,} events")


def lived(*commands: Command) -> list[Event]:
    machine, events = Response(), list[Event]()
    for command in (Accept(TAIL, 1764500000, False, {"model": "tiny"}), *commands):
        events += machine.receive(command)
    return events


def long_text() -> list[list[Event]]:
    """One log of one text."""
    return [lived(*(Text(WORDS[at % TOKENS]) for at in range(EVENTS - 4)))]


def answers() -> list[list[Event]]:
    """Many ended logs, each of some reasoning and a text."""
    commands = [Reasoning(word) for word in WORDS[:100]] + [Text(word) for word in WORDS[:400]]
    log = lived(*commands, Finish("stop", Usage(11, 500), 1764500001))
    return [log] * (EVENTS // len(log))


SHAPES = {"one long text": long_text, "answers of 500 tokens": answers}


@REPLAY
@pytest.mark.usefixtures("baseline")
def test_json_loads(benchmark: BenchmarkFixture) -> None:
    data = json.dumps(FRAME, separators=(",", ":"))

    def load() -> None:
        loads = json.loads
        for _ in range(EVENTS):
            loads(data)

    rounds(benchmark, load, count=3)


@REPLAY
@pytest.mark.parametrize("shape", SHAPES)
def test_replay(benchmark: BenchmarkFixture, shape: str) -> None:
    logs = SHAPES[shape]()

    def replay() -> None:
        for log in logs:
            Response.replay(log)

    benchmark.extra_info["at most"] = 0.3
    rounds(benchmark, replay, count=3)


# --- a kept log ---------------------------------------------------------------------------------


def test_memory_of_a_finished_log(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that the events of one log hold, the texts of its tokens included."""

    def build() -> EventLog:
        machine, log = Response(), EventLog()
        log.extend(machine.receive(Accept(TAIL, 1764500000, False, {"model": "tiny"})))
        for at in range(TOKENS):
            log.extend(machine.receive(Text(f" w{at}")))
        log.extend(machine.receive(Finish("stop", Usage(11, TOKENS), 1764500001)))
        return log

    build()
    tracemalloc.start()
    log = build()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    benchmark.extra_info["bytes"] = size
    rounds(benchmark, build, count=3)
    with capsys.disabled():
        print(f"\na finished log of {TOKENS} tokens: {size:,} bytes (at most 1,200,000)")
    assert len(log) > TOKENS
    assert size < 1_200_000
