"""Reading a run: whole, in one piece when late, offered as it comes, bounded when behind."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import attrs
import pytest

from antiphon.engines.port import Finish
from antiphon.runs.run import Run
from antiphon.runs.subscribers import BATCH, PING, Subscription
from antiphon.transport.sink import Headers
from runs.scripted import Stage

STOP = Finish.STOP


@attrs.define
class Sink:
    """A sink with room for so many bytes."""

    room: int = 2**30
    offered: list[bytes] = attrs.field(factory=list)
    ended: int = 0
    queued: int = 0
    detached: bool = False
    protocol: str = "test"
    ready: Callable[[], None] = lambda: None
    closed: Callable[[], None] = lambda: None
    changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def start(self, status: int, headers: Headers) -> None:
        raise NotImplementedError

    def offer(self, data: bytes) -> bool:
        if len(data) > self.room:
            self.detached = True
            return False
        self.room -= len(data)
        self.offered.append(data)
        self.changed.set()
        return True

    def end(self) -> None:
        self.ended += 1

    def reset(self) -> None:
        raise NotImplementedError

    def on_ready(self, callback: Callable[[], None]) -> None:
        self.ready = callback

    def on_closed(self, callback: Callable[[], None]) -> None:
        self.closed = callback

    async def finished(self) -> None:
        raise NotImplementedError


def opened(stage: Stage) -> Run:
    run = stage.open()
    stage.accept(run)
    return run


def say(stage: Stage, run: Run, text: bytes, finish: Finish = Finish.NONE) -> None:
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, text, finish=finish))


def frames_of(say_it: Callable[[Stage, Run], None]) -> list[bytes]:
    """What a run says that nobody reads."""
    stage = Stage()
    run = opened(stage)
    say_it(stage, run)
    return run.frames


async def test_a_subscription_reads_all_frames_in_whole_and_leaves_once() -> None:
    def tell(stage: Stage, run: Run) -> None:
        say(stage, run, b"a")
        say(stage, run, b"b", STOP)

    stage = Stage()
    run = opened(stage)
    left: list[None] = []
    reader = Subscription(run, ping_s=0, leave=lambda: left.append(None))
    first = await anext(reader)
    tell(stage, run)
    rest = await anext(reader)  # a reader that lagged gets all it missed in one piece
    assert first + rest == b"".join(frames_of(tell))
    assert run.frames == []  # they are kept once at most
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    await reader.aclose()
    assert left == [None]


async def test_an_attached_sink_gets_every_frame_in_its_step_and_then_the_end() -> None:
    stage = Stage()
    run = opened(stage)
    sink = Sink()
    Subscription(run, ping_s=0, leave=lambda: None).attach(sink)
    assert len(sink.offered) == 1  # what came before
    for text in (b"a", b"b"):
        before = len(sink.offered)
        say(stage, run, text)
        assert len(sink.offered) == before + 1
    say(stage, run, b"c", STOP)
    assert sink.ended == 1
    assert sink.offered[-1].endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("text", [b"x", b"x" * 90])
async def test_a_reader_that_is_behind_catches_up_and_loses_nothing(text: bytes) -> None:
    times = 400

    def tell(stage: Stage, run: Run) -> None:
        for _ in range(times):
            say(stage, run, text[:1])
        say(stage, run, text[1:], STOP)

    stage = Stage()
    run = opened(stage)
    sink = Sink(room=1000)
    Subscription(run, ping_s=0, leave=lambda: None).attach(sink)
    tell(stage, run)
    assert (sink.detached, sink.ended) == (True, 0)
    refused = len(sink.offered)
    while sink.ended < 1:
        sink.room = BATCH
        sink.ready()
    assert all(len(batch) <= BATCH for batch in sink.offered[refused:])
    assert all(batch.endswith(b"\n\n") for batch in sink.offered)
    assert b"".join(sink.offered) == b"".join(frames_of(tell))
    assert len(sink.offered) < times  # it does not do so frame by frame


async def test_a_reader_that_is_level_again_gets_frames_as_they_come() -> None:
    stage = Stage()
    run = opened(stage)
    sink = Sink(room=0)
    Subscription(run, ping_s=0, leave=lambda: None).attach(sink)
    say(stage, run, b"a")
    assert sink.offered == []
    sink.room = 10_000
    sink.ready()
    before = len(sink.offered)
    say(stage, run, b"b")
    assert len(sink.offered) == before + 1


async def test_a_reader_too_far_behind_ends_its_run_and_can_still_read_why() -> None:
    stage = Stage()
    run = opened(stage)
    other = stage.open(tail="r2")
    stage.accept(other)
    sink = Sink(room=0)
    reader = Subscription(run, ping_s=0, leave=lambda: None, backlog=5000)
    reader.attach(sink)
    said = 0
    while not run.ended:
        say(stage, run, b"a")
        said += 1
    assert said < 100
    assert run.choices[0].key in stage.engine.aborted
    assert not other.ended
    sink.room = 100_000
    sink.ready()
    text = b"".join(sink.offered)
    assert text.count(b'"content":"a"') == said
    assert b"read too slowly" in text
    assert text.endswith(b"data: [DONE]\n\n")
    assert sink.ended == 1


async def test_a_sink_that_is_closed_ends_the_reading_once() -> None:
    stage = Stage()
    run = opened(stage)
    sink = Sink()
    left: list[None] = []
    reader = Subscription(run, ping_s=0, leave=lambda: left.append(None))
    reader.attach(sink)
    sink.closed()
    say(stage, run, b"a")
    await reader.aclose()
    assert left == [None]
    assert len(sink.offered) == 1


async def test_a_reader_that_comes_after_the_end_gets_all_and_the_end() -> None:
    stage = Stage()
    run = opened(stage)
    say(stage, run, b"a", STOP)
    sink = Sink()
    Subscription(run, ping_s=0, leave=lambda: None).attach(sink)
    assert sink.ended == 1
    assert b"".join(sink.offered).endswith(b"data: [DONE]\n\n")


@pytest.mark.wire("F6", "K20")
async def test_a_silent_stream_carries_comments() -> None:
    run = opened(Stage())
    reader = Subscription(run, ping_s=1e-6, leave=lambda: None)
    await anext(reader)
    assert await anext(reader) == PING


@pytest.mark.wire("F6")
async def test_a_silent_sink_gets_comments_until_it_is_closed() -> None:
    run = opened(Stage())
    sink = Sink()
    reader = Subscription(run, ping_s=1e-3, leave=lambda: None)
    reader.attach(sink)
    with anyio.fail_after(10):
        while sink.offered[1:] != [PING, PING]:
            sink.changed = anyio.Event()
            await sink.changed.wait()
    reader.close()


async def test_what_has_not_been_written_yet_needs_no_comment() -> None:
    run = opened(Stage())
    sink = Sink(queued=1)
    reader = Subscription(run, ping_s=1e-6, leave=lambda: None)
    reader.attach(sink)
    await anyio.sleep(0.01)
    reader.close()
    assert PING not in sink.offered
