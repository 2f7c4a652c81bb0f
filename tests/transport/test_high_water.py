"""Readers that do not read: what waits for them is bounded, and nobody else waits at all.

And when they do read, they get every byte. Runs, subscriptions and sockets are real.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.events import DataReceived
from h2.settings import SettingCodes, Settings
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engines.port import Finish
from antiphon.transport import connection
from antiphon.transport.http2_sending import MAX_FRAME, PASS
from antiphon.transport.limits import Limits
from antiphon.transport.wire import HIGH
from transport.hosting import GUARD_S, H1Client, H2Client, PatientH2, Tracker
from transport.kinds import Answered, Client
from transport.theatre import EVERY, SMALL, Theatre, theatre

STOP = Finish.STOP
KIB = 1024
GREAT = 2**30
TEXT = b"a token and another one and more of them, as long as it may be"
FRAME = len(TEXT) + 300
"""No frame is longer."""
LIMITS = Limits(stream_high=16 * KIB, stream_low=4 * KIB, connection_high=128 * KIB)
MANY = 1200
"""Steps that fill a buffer and all that a socket holds."""
STALLED = 0.3
"""Seconds. A neighbour that reads never takes so long."""
HOW = ["h1", "h1 tls", "h2 window", "h2 socket", "h2 tls window", "h2 tls socket"]


@asynccontextmanager
async def reader(
    it: Theatre, how: str, name: str, window: int | None = None
) -> AsyncIterator[Client]:
    """A client that has asked for a run and reads nothing by itself. Where it is said to stall by
    its window, that is small; else it holds only a little by its socket."""
    http2 = how.startswith("h2")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    sock.connect(("127.0.0.1", it.app.listener.port))
    if it.trust is not None:
        it.trust.set_alpn_protocols(["h2" if http2 else "http/1.1"])
    secure = {"ssl": it.trust, "server_hostname": "127.0.0.1"} if it.trust else {}
    streams, writer = await asyncio.open_connection(sock=sock, limit=KIB, **secure)  # type: ignore[arg-type]
    if it.trust is not None:
        writer.transport.set_read_buffer_limits(KIB)  # type: ignore[attr-defined]
    try:
        if http2:
            connection = PatientH2(H2Configuration(client_side=True))
            first = window if window is not None else 1000 if "window" in how else GREAT
            connection.local_settings = Settings(
                client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: first}
            )
            connection.initiate_connection()
            connection.increment_flow_control_window(GREAT)
            client = H2Client(streams, writer, connection, acknowledge=False)
            yield Client(None, client, await client.request(f"/{name}"), b"2")
        else:
            h1 = H1Client(streams, writer)
            await h1.send(
                b"GET /%s HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n" % name.encode()
            )
            yield Client(h1, None, 1, b"1.1")
        await it.until(lambda: name in it.readers)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def all_of(client: Client) -> Answered:
    """Now it reads, whatever there is."""
    if client.h2 is not None:
        await widen(client.h2, client.stream)
    return await client.answer()


async def widen(client: H2Client, stream: int) -> None:
    more = GREAT - max(0, client.h2.streams[stream].inbound_flow_control_window)
    if more > 0:
        client.h2.increment_flow_control_window(more, stream)
        await client.flush()


async def until_read(client: H2Client, stream: int, size: int) -> None:
    await client.read_until(lambda: len(client.body(stream)) >= size)


async def reads_along(it: Theatre, client: H2Client, stream: int, name: str) -> None:
    """It has got all that its run has said, and is level with it."""
    await until_read(client, stream, it.sent(name))
    assert it.readers[name].level


@pytest.mark.parametrize("how", HOW)
async def test_a_stalled_reader(how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tls = tmp_path if "tls" in how else None
    async with (
        theatre(monkeypatch, LIMITS, tls=tls) as it,
        reader(it, how, "slow") as slow,
        reader(it, "h2", "other") as elsewhere,
    ):
        other = elsewhere.h2
        assert other is not None
        beside: int | None = None
        if slow.h2 is not None and "window" in how:
            beside = await slow.h2.request("/beside")
            await widen(slow.h2, beside)
        names = {"slow", "other"} | ({"beside"} if beside else set())
        await it.until(lambda: it.readers.keys() == names)

        async def neighbours() -> None:
            await reads_along(it, other, elsewhere.stream, "other")
            if beside is not None:
                assert slow.h2 is not None
                await reads_along(it, slow.h2, beside, "beside")

        await it.flood(MANY, TEXT)
        assert not it.readers["slow"].level
        assert it.sinks["slow"].detached
        await neighbours()
        for _ in range(3):  # step by step, as if nothing was
            it.say(TEXT)
            await neighbours()
        assert it.sinks["slow"].detached
        assert it.readers["slow"].waits > 50 * KIB
        assert it.config.counted.detached >= 1
        if slow.h2 is not None and "window" in how:
            assert len(slow.h2.body(slow.stream)) == 1000
        assert it.peak <= LIMITS.stream_high + FRAME
        assert it.most_unsent <= HIGH + LIMITS.stream_high * 3 + FRAME
        it.say(b"end", finish=STOP)
        await other.until_ended(elsewhere.stream)
        await it.until(lambda: "other" in it.ended)
        assert "slow" not in it.ended
        answered = await all_of(slow)
        assert answered == Answered(200, it.frames_of("slow"), whole=True)
        assert answered.body.count(b"data: [DONE]") == 1
        assert answered.body.replace(b"slow", b"other") == other.body(elsewhere.stream)
        if beside is not None:
            assert slow.h2 is not None
            await slow.h2.until_ended(beside)
            assert slow.h2.body(beside) == it.frames_of("beside")
        await it.until(lambda: it.ended == names)
        assert it.aborted == set()
        assert it.config.counted.stalled_readers == 0


async def test_a_reader_may_stall_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It falls behind, comes level, and falls behind: nothing is lost at the seams."""
    async with theatre(monkeypatch, LIMITS) as it, reader(it, "h2 window", "slow") as slow:
        client = slow.h2
        assert client is not None
        await it.until(lambda: "slow" in it.readers)
        room = 1000
        for _ in range(4):
            await it.flood(100, TEXT)
            assert not it.readers["slow"].level
            client.h2.increment_flow_control_window(it.sent("slow") - room, slow.stream)
            room = it.sent("slow")
            await client.flush()
            await client.read_until(lambda: it.readers["slow"].level)
            it.say(TEXT)
        it.say(b"end", finish=STOP)
        assert await all_of(slow) == Answered(200, it.frames_of("slow"), whole=True)
        assert it.config.counted.detached >= 4


@pytest.mark.parametrize("streams", [30])
async def test_many_stalled_streams_share_the_bound_of_their_connection(
    streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may hold so much, and all together no more than the connection; then all of them catch
    up."""
    names = [f"s{number}" for number in range(streams)]
    async with theatre(monkeypatch, LIMITS) as it, reader(it, "h2", "s0", window=0) as first:
        client = first.h2
        assert client is not None
        ids = [first.stream, *[await client.request(f"/{name}") for name in names[1:]]]
        await it.until(lambda: len(it.readers) == streams)
        async with reader(it, "h2", "other") as elsewhere:
            other = elsewhere.h2
            assert other is not None
            await it.until(lambda: "other" in it.readers)
            await it.flood(80, TEXT)
            held = sum(sink.queued for name, sink in it.sinks.items() if name != "other")
            assert LIMITS.connection_high < held <= LIMITS.connection_high + FRAME
            (load,) = {id(each._load) for each in it.buffers[:streams]}
            assert it.most[load] == held
            # Nobody holds more than his share, nor did the first take all of it.
            assert it.peak <= LIMITS.stream_high
            await reads_along(it, other, elsewhere.stream, "other")
            assert all(it.sinks[name].detached for name in names)
            it.say(b"end", finish=STOP)
            for stream in ids:
                await widen(client, stream)
            await client.until_ended(*ids)
            for name, stream in zip(names, ids, strict=True):
                assert client.body(stream) == it.frames_of(name)
            assert it.most[load] <= LIMITS.connection_high + max(LIMITS.stream_high, FRAME)


async def test_a_thousand_stalled_readers_hold_what_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted in the buffers and in the sockets. What they have not been offered is in their
    runs."""
    limits = Limits(stream_high=2 * KIB, stream_low=KIB, connection_high=256 * KIB)
    each, connections = 250, 4
    async with theatre(monkeypatch, limits) as it:
        async with (
            reader(it, "h2", "a0", window=0) as one,
            reader(it, "h2", "b0", window=0) as two,
            reader(it, "h2", "c0", window=0) as three,
            reader(it, "h2", "d0", window=0) as four,
        ):
            for letter, client in zip("abcd", (one, two, three, four), strict=True):
                assert client.h2 is not None
                for number in range(1, each):
                    client.h2.queue(f"/{letter}{number}")
                await client.h2.flush()
            await it.until(lambda: len(it.readers) == each * connections)
            await it.flood(15, TEXT)
            held = [buffer.size for buffer in it.buffers]
            assert max(held) <= limits.stream_high
            assert sum(held) <= connections * (limits.connection_high + FRAME)
            assert it.most_unsent <= HIGH + PASS + MAX_FRAME
            assert all(sink.detached for sink in it.sinks.values())
        await it.until(lambda: len(it.ended) == each * connections)
        assert it.aborted == set(it.runs)
        assert sum(buffer.size for buffer in it.buffers) == 0


@pytest.mark.parametrize("how", ["h1", "h2 window"])
async def test_too_far_behind(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and its reader can still read why. It gets all that was said before, one
    end, and no more; its neighbours go on."""
    backlog = 30 * KIB
    async with (
        theatre(monkeypatch, LIMITS, backlog=backlog) as it,
        reader(it, how, "slow") as slow,
        reader(it, "h2", "other") as elsewhere,
    ):
        other = elsewhere.h2
        assert other is not None
        await it.until(lambda: it.readers.keys() == {"slow", "other"})
        while not it.runs["slow"].ended:
            await it.flood(EVERY, TEXT)
            await reads_along(it, other, elsewhere.stream, "other")
        assert it.readers["slow"].most <= backlog + 3 * FRAME
        said = it.sent("slow")
        await it.flood(50, TEXT)
        assert it.sent("slow") == said
        assert it.aborted == {"slow"}
        answered = await all_of(slow)
        assert answered.whole
        assert answered.body.startswith(it.frames_of("slow"))
        assert answered.body.count(b"read too slowly") == 1
        assert answered.body.count(b"data: [DONE]\n\n") == 1
        assert answered.body.endswith(b"data: [DONE]\n\n")
        it.say(b"end", "other", finish=STOP)
        await other.until_ended(elsewhere.stream)
        assert other.body(elsewhere.stream) == it.frames_of("other")


@pytest.mark.parametrize("how", HOW)
async def test_a_reader_that_takes_nothing_is_gone_in_the_end(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits = Limits(
        stream_high=16 * KIB, stream_low=4 * KIB, connection_high=128 * KIB, stall_timeout=STALLED
    )
    tls = tmp_path if "tls" in how else None
    # The system would end a socket that is full for so short a time before this process is done
    # with filling its own buffer, where that is slow.
    monkeypatch.setattr(connection, "watched_by_the_system", lambda *_: None)
    async with (
        theatre(monkeypatch, limits, tls=tls) as it,
        reader(it, how, "slow") as slow,
        reader(it, "h2", "other") as elsewhere,
    ):
        other = elsewhere.h2
        assert other is not None
        await it.until(lambda: it.readers.keys() == {"slow", "other"})
        for _ in range(MANY // 50):
            await it.flood(50, TEXT)
            await reads_along(it, other, elsewhere.stream, "other")
        await it.until(lambda: "slow" in it.ended)
        assert it.aborted == {"slow"}
        assert it.config.counted.stalled_readers == 1
        answered = await slow.answer()
        assert not answered.whole
        assert it.frames_of("slow").startswith(answered.body)
        if "window" in how:
            assert slow.h2 is not None
            assert answered.reset == ErrorCodes.CANCEL
            again = await slow.h2.request("/again")  # the connection is good
            await it.until(lambda: "again" in it.readers)
            await widen(slow.h2, again)
            it.say(b"end", "again", finish=STOP)
            await slow.h2.until_ended(again)
        it.say(b"end", "other", finish=STOP)
        await other.until_ended(elsewhere.stream)
        assert other.body(elsewhere.stream) == it.frames_of("other")
        assert it.config.counted.stalled_readers == 1


@pytest.mark.parametrize("how", ["h1", "h2 window", "h2 socket"])
async def test_so_is_one_whose_handler_waits_for_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By plain ASGI messages, one after the other: the handler waits, with a bound, and ends."""
    limits = Limits(stream_high=16 * KIB, stream_low=4 * KIB, stall_timeout=STALLED)
    tracker, sent = Tracker(), itertools.count()
    async with theatre(monkeypatch, limits) as it:

        @it.app.plain
        async def flood(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            it.readers["slow"] = it.readers.get("slow")  # type: ignore[assignment]

            async def gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            with tracker:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(gone)
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    while True:
                        next(sent)
                        await send(
                            {"type": "http.response.body", "body": bytes(KIB), "more_body": True}
                        )

        async with reader(it, how, "slow") as slow:
            await tracker.until(lambda it: it.left == 1)
            assert it.config.counted.stalled_readers == 1
            # The buffer, and what the socket and the system hold: far from a flood.
            assert next(sent) * KIB < limits.stream_high + 2 * HIGH + 16 * SMALL
            assert not (await slow.answer()).whole


@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 2000), min_size=1, max_size=20), first=st.integers(0, 700))
def test_windows_of_any_size_and_frames_cut_anywhere(sizes: list[int], first: int) -> None:
    """The client opens its window by little and little, from nothing; every byte comes once."""

    async def run() -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            async with (
                theatre(monkeypatch, LIMITS) as it,
                reader(it, "h2", "slow", window=first) as slow,
            ):
                client, stream = slow.h2, slow.stream
                assert client is not None
                await it.until(lambda: "slow" in it.readers)
                room = first
                for size in sizes:
                    it.say(TEXT)
                    due = min(room, it.sent("slow"))
                    await until_read(client, stream, due)
                    assert len(client.body(stream)) == due
                    client.h2.increment_flow_control_window(size, stream)
                    await client.flush()
                    room += size
                it.say(b"end", finish=STOP)
                assert await all_of(slow) == Answered(200, it.frames_of("slow"), whole=True)

    anyio.run(run)


async def test_a_window_that_is_made_smaller_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        theatre(monkeypatch, LIMITS) as it,
        reader(it, "h2", "slow", window=2000) as slow,
    ):
        client = slow.h2
        assert client is not None
        await it.until(lambda: "slow" in it.readers)
        await it.flood(100, TEXT)
        await client.read_until(lambda: len(client.body(slow.stream)) == 2000)
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
        await client.flush()
        await client.read_until(lambda: client.h2.local_settings.initial_window_size == 10)
        client.h2.increment_flow_control_window(1990, slow.stream)  # up to 0
        await client.flush()
        neighbour = await client.request("/beside")
        await it.until(lambda: "beside" in it.readers)
        await widen(client, neighbour)
        it.say(b"end", "beside", finish=STOP)
        await client.until_ended(neighbour)
        assert len(client.body(slow.stream)) == 2000
        it.say(b"end", "slow", finish=STOP)
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: GREAT})
        await client.flush()
        assert await slow.answer() == Answered(200, it.frames_of("slow"), whole=True)


async def test_a_shut_connection_window_under_open_windows_of_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All streams of the connection stall together, none of another, and none is lost."""
    async with (
        theatre(monkeypatch, LIMITS) as it,
        H2Client.connect(it.app.listener.port, GREAT) as client,
        reader(it, "h2", "other") as elsewhere,
    ):
        other = elsewhere.h2
        assert other is not None
        client.acknowledge = False
        streams = {name: await client.request(f"/{name}") for name in ("one", "two")}
        await it.until(lambda: it.readers.keys() == {"one", "two", "other"})
        await it.flood(400, TEXT)
        await client.read_until(
            lambda: sum(len(client.body(each)) for each in streams.values()) == 65_535
        )
        await reads_along(it, other, elsewhere.stream, "other")
        assert all(it.sinks[name].detached for name in streams)
        assert all(client.body(each) for each in streams.values())
        assert it.peak <= LIMITS.stream_high
        client.h2.increment_flow_control_window(GREAT)
        await client.flush()
        it.say(b"end", finish=STOP)
        await client.until_ended(*streams.values())
        for name, stream in streams.items():
            assert client.body(stream) == it.frames_of(name)


async def test_who_leaves_while_behind_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with theatre(monkeypatch, LIMITS) as it:
        async with reader(it, "h2 window", "slow") as slow:
            await it.until(lambda: "slow" in it.readers)
            await it.flood(200, TEXT)
            slow.leave()
            with anyio.fail_after(GUARD_S):
                await it.until(lambda: "slow" in it.ended)
            assert slow.h2 is not None
            assert slow.h2.of(DataReceived) == []
        assert it.aborted == {"slow"}
        assert sum(buffer.size for buffer in it.buffers) == 0
