"""The cost of a token in the lifecycle library, of a replay and of a kept log.

A token is measured from a piece of text to the bytes of its frame (segmenter, machine, log,
projection), beside ``json.dumps`` of that frame as a dict; a replay beside ``json.loads`` of the
frames. Each is taken in turns with its baseline.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs
import pytest
from benchmarks.ratios import beside
from pytest_benchmark.fixture import BenchmarkFixture

from responsory import EventLog, Logprob, Response, Usage
from responsory.commands import Accept, Command, Finish, Reasoning, Text
from responsory.events import Event
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.segments import FORMATS, Piece, Segmenter

TAIL = "01a22cb0bbea71b8be094da1c26e61e9"
TOKENS = 4096
EVENTS = 1_000_000

WORDS = [f" w{at % 997}" for at in range(TOKENS)]
LINES = [f"w{at}\n" if at % 8 == 0 else word for at, word in enumerate(WORDS)]
"""Every eighth token ends a line, and what ends in white space may touch a marker."""

FRAME: Mapping[str, Any] = {
    "type": "response.output_text.delta",
    "sequence_number": 1017,
    "item_id": f"msg_{TAIL}_0",
    "output_index": 0,
    "content_index": 0,
    "delta": " there",
    "logprobs": [],
}


class Stream(Protocol):
    def feed(self, choice: int, events: Sequence[Event]) -> list[bytes]: ...


# --- one token ----------------------------------------------------------------------------------


def plain(words: Iterable[str]) -> list[list[Piece]]:
    return [[Piece(word, (at,))] for at, word in enumerate(words)]


def with_logprobs(words: Iterable[str]) -> list[list[Piece]]:
    return [
        [Piece(word, (at,), (Logprob(word, -0.25, word.encode()),))]
        for at, word in enumerate(words)
    ]


@attrs.frozen(kw_only=True)
class Life:
    """One way of a token, its baseline, and the bar if it has one."""

    stream: Callable[[], Stream] = ResponsesStream
    family: str = "plain"
    stop: str = ""
    steps: list[list[Piece]] = attrs.field(factory=lambda: plain(WORDS))
    bar: float | None = None


LIVES = {
    "responses": Life(bar=0.6),
    "chat": Life(stream=ChatStream, bar=0.8),
    "completions": Life(stream=CompletionsStream),
    "responses, think": Life(family="think"),
    "responses, think, lines": Life(family="think", steps=plain(LINES)),
    "responses, stop string": Life(stop="STOP"),
    "responses, logprobs": Life(steps=with_logprobs(WORDS)),
}


def deltas(life: Life) -> Iterator[dict[str, Any]]:
    """The frames of the same life's Responses stream, as dicts."""
    segmenter, machine, stream = Segmenter(FORMATS[life.family]), Response(), ResponsesStream()
    stream.feed(0, machine.receive(Accept(TAIL, 1764500000, False, {"model": "tiny"})))
    for pieces in life.steps:
        for segment in segmenter.feed(pieces):
            for frame in stream.feed(0, machine.receive(segment)):
                yield json.loads(frame.partition(b"data: ")[2])


@pytest.mark.benchmark(group=f"lifecycle: a token, beside json.dumps of its frame ({TOKENS} times)")
@pytest.mark.parametrize("name", LIVES)
def test_token(benchmark: BenchmarkFixture, name: str) -> None:
    """Segment, machine, log and frame."""
    life = LIVES[name]

    frames = list(deltas(life))

    def dump() -> None:
        dumps = json.dumps
        for frame in frames:
            dumps(frame)

    def setup() -> tuple[Any, ...]:
        machine, log, stream = Response(), EventLog(), life.stream()
        events = machine.receive(Accept(TAIL, 1764500000, False, {"model": "tiny"}))
        log.extend(events)
        stream.feed(0, events)
        stops = (life.stop,) if life.stop else ()
        return Segmenter(FORMATS[life.family], stop=stops), machine, log, stream

    def play(segmenter: Segmenter, machine: Response, log: EventLog, stream: Stream) -> None:
        read, receive, append, render = segmenter.feed, machine.receive, log.extend, stream.feed
        for pieces in life.steps:
            for segment in read(pieces):
                events = receive(segment)
                append(events)
                render(0, events)

    beside(benchmark, play, dump, setup=setup, bar=life.bar)


# --- a replay -----------------------------------------------------------------------------------


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


def short_items() -> list[list[Event]]:
    """Many ended logs of items of one delta each: here every group is decided again."""
    commands = [kind(word) for word in WORDS[:50] for kind in (Reasoning, Text)]
    log = lived(*commands, Finish("stop", Usage(11, 100), 1764500001))
    return [log] * (EVENTS // len(log))


SHAPES: Mapping[str, tuple[Callable[[], list[list[Event]]], float | None]] = {
    "one long text": (long_text, 0.3),
    "answers of 500 tokens": (answers, 0.3),
    "items of one token": (short_items, None),
}


@pytest.mark.benchmark(group=f"lifecycle: a replay of {EVENTS:,} events, beside json.loads")
@pytest.mark.parametrize("shape", SHAPES)
def test_replay(benchmark: BenchmarkFixture, shape: str) -> None:
    make, bar = SHAPES[shape]
    logs = make()
    data = json.dumps(FRAME, separators=(",", ":"))

    def load() -> None:
        loads = json.loads
        for _ in range(EVENTS):
            loads(data)

    def replay() -> None:
        for log in logs:
            Response.replay(log)

    beside(benchmark, replay, load, rounds=3, bar=bar)


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
    benchmark.pedantic(build, rounds=3)  # type: ignore[no-untyped-call]  # untyped there
    with capsys.disabled():
        print(f"\na finished log of {TOKENS} tokens: {size:,} bytes (at most 1,200,000)")
    assert len(log) > TOKENS
    assert size < 1_200_000
