"""The frame sink: what an application may count on, over real sockets of every kind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import anyio
import attrs
import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from antiphon.transport.ending import Ending
from antiphon.transport.limits import Limits
from antiphon.transport.sink import FRAMES, FrameSink, StepFlush
from antiphon.transport.wire import Wire
from transport.hosting import (
    GUARD_S,
)
from transport.kinds import KINDS, Answered, Kind, housed
from transport.streaming import sink_of

EVENTS = [b"data: %d\n\n" % number for number in range(1000)]
EVENT_STREAM = [(b"content-type", b"text/event-stream")]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    each: Kind = request.param
    return each


async def test_every_frame_in_order_then_the_end(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:
        seen: list[object] = []

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            seen.append(sink.protocol)
            await sink.start(201, [*EVENT_STREAM, (b"x-own", b"yes")])
            sink.on_closed(lambda: seen.append("closed"))  # which it is not: it ends
            for number, event in enumerate(EVENTS):
                assert sink.offer(event)
                if number % 100 == 0:
                    await asyncio.sleep(0)
            seen.append(sink.detached)
            sink.end()
            sink.offer(b"data: late\n\n")
            await sink.finished()
            seen.append(sink.queued)

        async with house.client() as client:
            answered = await client.answer()
        assert answered == Answered(201, b"".join(EVENTS), whole=True)
        assert seen == ["h2" if kind.startswith("h2") else "h1", False, 0]


async def test_an_end_without_a_body(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            sink.end()

        async with house.client() as client:
            assert await client.answer() == Answered(200, b"", whole=True)


async def test_a_head_leaves_at_once(kind: Kind, tmp_path: Path) -> None:
    """Before there is any frame."""
    async with housed(kind, tmp_path) as house:
        read = anyio.Event()

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            await read.wait()
            sink.offer(EVENTS[0])
            sink.end()

        async with house.client() as client:
            if client.h1 is not None:
                head = await client.h1.until(b"\r\n\r\n")
                read.set()
                assert head.split()[1] == b"200"
            elif client.h2 is not None:
                await client.h2.until_begun(client.stream)
                read.set()
                assert (await client.answer()).body == EVENTS[0]


async def test_the_body_goes_one_way(kind: Kind, tmp_path: Path) -> None:
    """Whoever has started by the sink can send no ASGI message, and nobody starts twice."""
    async with housed(kind, tmp_path) as house:

        @house.app.plain
        async def answer(scope: Scope, _: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            sink = sink_of(scope)
            await sink.start(200, EVENT_STREAM)
            sink.offer(EVENTS[0])
            with pytest.raises(RuntimeError):
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
            with pytest.raises(RuntimeError):
                await send({"type": "http.response.start", "status": 200, "headers": []})
            with pytest.raises(RuntimeError):
                await sink.start(200, [])
            sink.offer(EVENTS[1])
            sink.end()
            await sink.finished()

        async with house.client() as client:
            answered = await client.answer()
        assert answered == Answered(200, EVENTS[0] + EVENTS[1], whole=True)


async def test_the_head_comes_first(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            with pytest.raises(RuntimeError):
                sink.offer(EVENTS[0])
            with pytest.raises(RuntimeError):
                sink.end()
            await sink.start(200, EVENT_STREAM)
            sink.offer(EVENTS[1])
            sink.end()

        async with house.client() as client:
            assert await client.answer() == Answered(200, EVENTS[1], whole=True)


async def test_plain_messages_work_as_ever_beside_a_sink(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:

        @house.app.plain
        async def answer(scope: Scope, _: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            sink_of(scope)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await send({"type": "http.response.body", "body": b"two", "more_body": False})

        async with house.client() as client:
            assert await client.answer() == Answered(200, b"onetwo", whole=True)


async def test_an_answer_to_head_has_no_sink(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:
        seen: list[bool] = []

        @house.app.plain
        async def answer(scope: Scope, _: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            assert scope["type"] == "http"
            seen.append(FRAMES in scope["extensions"])
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        for method in ("HEAD", "GET"):
            async with house.client(method) as client:
                if client.h1 is not None:
                    assert (await client.h1.rest()).split()[1] == b"200"
                else:
                    assert (await client.answer()).whole
        assert seen == [False, True]


async def test_a_frame_longer_than_the_mark(kind: Kind, tmp_path: Path) -> None:
    """It goes into an empty queue; what follows is refused until there is room, and then told."""
    long = b"x" * 300_000
    async with housed(kind, tmp_path) as house:
        states: list[bool] = []

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            ready = asyncio.Event()
            sink.on_ready(ready.set)
            for data in (long, EVENTS[0], long, EVENTS[1]):
                queued = sink.queued
                while not sink.offer(data):
                    states.append(sink.detached)
                    assert sink.queued == queued  # nothing of it was taken
                    ready.clear()
                    await ready.wait()
                    states.append(sink.detached)
                    queued = sink.queued
            sink.end()

        async with house.client() as client:
            answered = await client.answer()
        body = long + EVENTS[0] + long + EVENTS[1]
        assert answered == Answered(200, body, whole=True)
        refused = states[::2]
        assert states == [True, False] * len(refused)
        assert house.config.counted.detached == len(refused) >= 2


async def test_breaking_off(kind: Kind, tmp_path: Path) -> None:
    """The client sees that there should have been more, and gets nothing of what is queued."""
    async with housed(kind, tmp_path) as house:
        go_on, closed = asyncio.Event(), 0

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            def count() -> None:
                nonlocal closed
                closed += 1

            await sink.start(200, EVENT_STREAM)
            sink.on_closed(count)
            sink.offer(EVENTS[0])
            await go_on.wait()
            sink.offer(EVENTS[1])
            sink.reset()
            sink.reset()
            assert sink.queued == 0
            assert sink.offer(EVENTS[2])
            sink.end()
            await sink.finished()

        async with house.client() as client:
            await client.until(EVENTS[0])
            go_on.set()
            answered = await client.answer()
        assert answered.body == EVENTS[0]
        assert not answered.whole or kind == "http/1.0"
        assert answered.reset == (ErrorCodes.INTERNAL_ERROR if kind.startswith("h2") else None)
        assert closed == 1


@pytest.mark.parametrize("how", ["reset", "lost", "server"])
async def test_whoever_leaves_is_told_of_once(kind: Kind, how: str, tmp_path: Path) -> None:
    """The client resets its stream, or its connection is lost, or the server ends."""
    closed, left, stop = 0, anyio.Event(), Ending()
    async with housed(kind, tmp_path, stop=stop) as house:

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            def count() -> None:
                nonlocal closed
                closed += 1

            await sink.start(200, EVENT_STREAM)
            sink.on_closed(count)
            sink.offer(EVENTS[0])
            try:
                await sink.finished()
            finally:
                assert sink.offer(EVENTS[1])  # dropped, and no fault
                sink.end()
                sink.reset()
                left.set()

        async with house.client() as client:
            await client.until(EVENTS[0])
            if how == "reset":
                client.leave()
            elif how == "lost":
                client.writer.transport.abort()
            else:
                stop.ask()
                with suppress(ConnectionError):
                    assert not (await client.answer()).whole or kind == "http/1.0"
            with anyio.fail_after(GUARD_S):
                await left.wait()
    assert closed == 1


async def test_who_asks_late_hears_at_once(kind: Kind, tmp_path: Path) -> None:
    async with housed(kind, tmp_path) as house:
        closed, done = 0, anyio.Event()

        @house.app.plain
        async def answer(scope: Scope, receive: ASGIReceiveCallable, _: ASGISendCallable) -> None:
            def count() -> None:
                nonlocal closed
                closed += 1

            sink = sink_of(scope)
            await sink.start(200, EVENT_STREAM)
            sink.offer(EVENTS[0])
            while (await receive())["type"] != "http.disconnect":
                pass
            sink.on_closed(count)
            done.set()

        async with house.client() as client:
            await client.until(EVENTS[0])
            client.writer.transport.abort()
            with anyio.fail_after(GUARD_S):
                await done.wait()
        assert closed == 1


async def test_an_answer_that_ends_without_its_end(kind: Kind, tmp_path: Path) -> None:
    """By mistake, or by an error: nobody waits for the rest."""
    async with housed(kind, tmp_path) as house:

        @house.app.plain
        async def answer(scope: Scope, _: ASGIReceiveCallable, __: ASGISendCallable) -> None:
            sink = sink_of(scope)
            await sink.start(200, EVENT_STREAM)
            sink.offer(EVENTS[0])
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        async with house.client() as client:
            answered = await client.answer()
        assert EVENTS[0].startswith(answered.body)
        assert not answered.whole or kind == "http/1.0"
        assert answered.reset == (ErrorCodes.INTERNAL_ERROR if kind.startswith("h2") else None)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Wire, bytes]]:
    """Every write to a transport, and whose it was."""
    seen: list[tuple[Wire, bytes]] = []
    write = Wire.write

    def watched(self: Wire, data: bytes) -> None:
        if data:
            seen.append((self, data))
        write(self, data)

    monkeypatch.setattr(Wire, "write", watched)
    return seen


@pytest.mark.wire("F5")
@pytest.mark.parametrize("kind", ["http/1.1", "h2", "h2 tls"])
async def test_one_write_to_each_connection_in_a_step(
    kind: Kind, tmp_path: Path, writes: list[tuple[Wire, bytes]]
) -> None:
    """Of 3 connections with 50 streams each, or one where it has no more: one step that offers two
    frames to each stream is one write to each connection, at the end of the step."""
    each = 50 if kind.startswith("h2") else 1
    async with housed(kind, tmp_path) as house:
        sinks: list[FrameSink] = []
        all_there, connections = anyio.Event(), 3

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            sinks.append(sink)
            if len(sinks) == connections * each:
                all_there.set()

        async with house.client() as one, house.client() as two, house.client() as three:
            clients = [one, two, three]
            for client in clients:
                if client.h2 is not None:
                    for _ in range(each - 1):
                        await client.h2.request("/")
            with anyio.fail_after(GUARD_S):
                await all_there.wait()
            house.config.flush.run()
            writes.clear()
            for step in range(10):
                for sink in sinks:
                    sink.offer(EVENTS[2 * step])
                    sink.offer(EVENTS[2 * step + 1])
                assert writes == []
                house.config.flush.run()
                assert len(writes) == len({id(wire) for wire, _ in writes}) == connections
                house.config.flush.run()  # there is nothing more
                assert len(writes) == connections
                writes.clear()
            for sink in sinks:
                sink.end()
            for client in clients:
                answered = await client.answer()
                assert answered == Answered(200, b"".join(EVENTS[:20]), whole=True)


async def test_a_step_that_does_not_write_is_written_soon(
    kind: Kind, tmp_path: Path, writes: list[tuple[Wire, bytes]]
) -> None:
    """Frames of one turn of the loop are written together, in the next."""
    async with housed(kind, tmp_path) as house:
        sinks: list[FrameSink] = []
        begun = anyio.Event()

        @house.app.answers
        async def answer(_: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            sinks.append(sink)
            begun.set()

        async with house.client() as client:
            with anyio.fail_after(GUARD_S):
                await begun.wait()
            await asyncio.sleep(0)
            writes.clear()
            for event in EVENTS[:5]:
                sinks[0].offer(event)
            assert writes == []
            await asyncio.sleep(0)
            (write,) = [data for _, data in writes]
            assert b"".join(EVENTS[:5]) in write or kind.startswith("h2")
            sinks[0].end()
            assert (await client.answer()).body == b"".join(EVENTS[:5])


class Failing:
    def flush(self) -> None:
        raise ValueError("in a connection")


@attrs.define(eq=False)
class Marked:
    """A connection that has more to say while it writes, for so many times."""

    flushes: StepFlush
    more: int = 0
    written: int = 0

    def flush(self) -> None:
        self.written += 1
        if self.written <= self.more:
            self.flushes.mark(self)


async def test_a_connection_is_written_to_once_a_run_however_often_it_is_marked() -> None:
    flushes = StepFlush()
    one, two = Marked(flushes), Marked(flushes, more=2)
    for _ in range(3):
        flushes.mark(one)
        flushes.mark(two)
    flushes.run()
    assert (one.written, two.written) == (1, 1)
    flushes.run()
    assert (one.written, two.written) == (1, 2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (one.written, two.written) == (1, 3)  # by itself
    flushes.run()
    assert (one.written, two.written) == (1, 3)


async def test_a_connection_that_fails_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    flushes = StepFlush()
    one, two = Marked(flushes), Marked(flushes)
    for connection in (one, Failing(), two):
        flushes.mark(connection)
    flushes.run()
    assert (one.written, two.written) == (1, 1)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("kind", ["h2"])
async def test_a_greedy_stream_leaves_the_others_their_turn(kind: Kind, tmp_path: Path) -> None:
    """It has all of its data there at once; the others come with one frame a step, and each of
    those leaves in its step."""
    limits = Limits(stream_high=2**24, connection_high=2**25)
    async with housed(kind, tmp_path, limits) as house:
        sinks: dict[str, FrameSink] = {}
        all_there = anyio.Event()

        @house.app.answers
        async def answer(path: str, sink: FrameSink) -> None:
            await sink.start(200, EVENT_STREAM)
            sinks[path] = sink
            if len(sinks) == 11:
                all_there.set()

        async with house.client(path="/greedy") as client:
            h2 = client.h2
            assert h2 is not None
            h2.h2.increment_flow_control_window(2**30)
            h2.h2.increment_flow_control_window(2**30, client.stream)
            streams = [await h2.request(f"/{number}") for number in range(10)]
            with anyio.fail_after(GUARD_S):
                await all_there.wait()
            greedy = sinks.pop("/greedy")
            greedy.offer(bytes(2**22))
            for number in range(3):
                for sink in sinks.values():
                    sink.offer(EVENTS[number])
                house.config.flush.run()
                assert all(sink.queued == 0 for sink in sinks.values())
            assert greedy.queued > 2**21
            for sink in (greedy, *sinks.values()):
                sink.end()
            await h2.until_ended(client.stream, *streams)
            assert len(h2.body(client.stream)) == 2**22
            assert all(h2.body(each) == b"".join(EVENTS[:3]) for each in streams)
            assert max(len(each.data) for each in h2.of(DataReceived)) <= 16_384
