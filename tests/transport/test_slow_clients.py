"""Clients that take their time: a header block, a body and a request each have theirs."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any

import anyio
import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingReceived
from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPResponseStartEvent,
    Scope,
)
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.deadline import Deadline
from antiphon.transport.limits import Limits
from antiphon.transport.pace import Pace
from antiphon.transport.peers import watched_by_the_system
from transport.hosting import OWN_ID, H1Client, H2Client, serving
from transport.scene import HEAD_END, scene
from transport.test_floods import END_STREAM, HEADERS, PING, PREFACE, SETTINGS, frame

SOON = 0.05
"""Seconds: what a slow client is given here."""
SLOW_BODY = Limits(body_first_byte=SOON, body_rate_window=SOON)
GET = b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n"


def code_of(answer: bytes) -> str:
    code: str = json.loads(answer.partition(HEAD_END)[2])["error"]["code"]
    return code


@pytest.mark.parametrize("before", [b"", GET])
async def test_a_header_block_that_does_not_end(
    caplog: pytest.LogCaptureFixture, before: bytes
) -> None:
    """Of the first request, and of one that follows."""
    async with (
        scene(caplog, Limits(header_timeout=SOON)) as it,
        H1Client.open(it.listener) as client,
    ):
        await client.send(before)
        if before:
            await client.until(b"hi")
        await client.send(b"GET /hi HTTP/1.1\r\nhost: x\r\n")
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close" in answer
        assert code_of(answer) == "request_timeout"
        assert it.numbers() == {"slow_headers": 1}


UPGRADE = (
    b"GET /silent HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\n"
    b"upgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n"
)


@pytest.mark.parametrize("cut", [1, 14, 17])
@pytest.mark.parametrize("upgrade", [False, True])
async def test_a_header_block_in_two_pieces_has_ended_when_another_protocol_begins(
    caplog: pytest.LogCaptureFixture, upgrade: bool, cut: int
) -> None:
    """Nothing is left that would end the new protocol later, or fail when it has ended."""
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    async with scene(caplog, Limits(header_timeout=SOON)) as it:
        async with H1Client.open(it.listener) as client:
            first = UPGRADE if upgrade else PREFACE + frame(SETTINGS)
            await client.send(first[:cut])
            for _ in range(20):
                await asyncio.sleep(0)
            await client.send(first[cut:])
            await client.until(b"Switching Protocols" if upgrade else frame(SETTINGS, flags=1))
        async with H1Client.open(it.listener) as slow:  # It takes longer than the other had.
            await slow.send(b"GET /hi HTTP/1.1\r\n")
            assert (await slow.rest()).startswith(b"HTTP/1.1 408 ")
        assert it.numbers() == {"slow_headers": 1}
    assert not failures


async def test_a_deadline_can_be_missed_again() -> None:
    missed = asyncio.Event()
    deadline = Deadline(0, missed.set)
    for _ in range(2):
        deadline.watch(True)
        with anyio.fail_after(9):
            await missed.wait()
        missed.clear()
    deadline.watch(True)
    deadline.watch(False)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not missed.is_set()


async def test_a_header_block_that_comes_byte_by_byte(caplog: pytest.LogCaptureFixture) -> None:
    """Each byte is no beginning."""
    async with (
        scene(caplog, Limits(header_timeout=SOON)) as it,
        H1Client.open(it.listener) as client,
    ):
        answering = asyncio.ensure_future(client.rest())
        while not answering.done():
            client.writer.write(b"G")
            await asyncio.wait({answering}, timeout=SOON / 10)
        assert (await answering).startswith(b"HTTP/1.1 408 ")
        assert it.numbers().pop("slow_headers") == 1


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(frame(HEADERS, b"\x82", stream=3, flags=END_STREAM), id="block"),
        pytest.param(frame(HEADERS, bytes(100), stream=3)[:20], id="frame"),
        pytest.param(b"\0", id="byte"),
    ],
)
async def test_an_http2_header_block_that_does_not_end(
    caplog: pytest.LogCaptureFixture, begun: bytes
) -> None:
    async with (
        scene(caplog, Limits(header_timeout=SOON)) as it,
        H2Client.open(it.listener) as client,
    ):
        open_stream = await client.request("/silent")
        await client.read_until(lambda: bool(client.of(DataReceived, open_stream)))
        client.writer.write(begun)
        await read_without_a_word(client)
        assert client.goaways == [ErrorCodes.ENHANCE_YOUR_CALM]
        assert it.numbers() == {"slow_headers": 1}


@pytest.mark.parametrize("sent", [b"", GET])
async def test_a_connection_without_a_request(
    caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    limits = Limits(idle_timeout=SOON) if sent else Limits(first_request_timeout=SOON)
    async with scene(caplog, limits) as it, H1Client.open(it.listener) as client:
        await client.send(sent)
        answer = await client.rest()
        assert answer.endswith(b"hi") if sent else not answer
        assert it.numbers() == {"idle_ends": 1}


@pytest.mark.parametrize("requests", [0, 1])
async def test_an_http2_connection_without_a_request(
    caplog: pytest.LogCaptureFixture, requests: int
) -> None:
    limits = Limits(idle_timeout=SOON) if requests else Limits(first_request_timeout=SOON)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        streams = [await client.request("/hi") for _ in range(requests)]
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.NO_ERROR]
        assert client.ended(*streams)
        assert it.numbers() == {"idle_ends": 1}


@pytest.mark.parametrize("sent", [b"", b"0123456789"])
@pytest.mark.parametrize("waits", [b"", b"expect: 100-continue\r\n"])
async def test_a_body_that_does_not_come(
    caplog: pytest.LogCaptureFixture, sent: bytes, waits: bytes
) -> None:
    async with scene(caplog, SLOW_BODY) as it, H1Client.open(it.listener) as client:
        await client.send(POST + b"x-request-id: mine\r\n" + waits + b"\r\n")
        if waits:
            assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 100 ")
        await client.send(sent)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close" in answer
        assert b"x-request-id: mine" in answer
        assert code_of(answer) == "request_timeout"
        await it.tracker.until(lambda tracker: tracker.left == tracker.entered == 1)
        assert it.numbers() == {"slow_bodies": 1}


@pytest.mark.parametrize("sent", [b"", b"0123456789"])
async def test_an_http2_body_that_does_not_come(
    caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    async with scene(caplog, SLOW_BODY) as it, H2Client.open(it.listener) as client:
        other = await client.request("/silent")
        slow = await client.request("/echo", "POST", end=False)
        await client.upload(slow, sent, end=False)
        await client.until_reset(slow)
        assert client.status(slow) == "408"
        assert json.loads(client.body(slow))["error"]["code"] == "request_timeout"
        assert client.ended(slow)
        assert client.reset(slow) == ErrorCodes.NO_ERROR
        assert await client.get("/hi") == b"hi"
        assert client.reset(other) is None
        assert not client.goaways
        await it.tracker.until(lambda tracker: tracker.live == 1)
        assert it.numbers() == {"slow_bodies": 1, "unread_bodies": 1}


async def test_a_body_that_ends_is_not_judged_by_what_it_took(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        scene(caplog, Limits(body_first_byte=9, body_rate_window=9)) as it,
        H2Client.open(it.listener) as client,
    ):
        stream = await client.request("/echo", "POST", end=False)
        for _ in range(3):
            await client.upload(stream, b"x", end=False)
            await client.get("/hi")
        await client.upload(stream, b"x")
        await client.until_ended(stream)
        assert client.body(stream) == b"xxxx"
        assert not it.numbers()


async def test_a_body_is_not_waited_for_by_who_answers_already(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(caplog, SLOW_BODY) as it, H2Client.open(it.listener) as client:
        begun = await client.request("/begun", "POST", end=False)
        await client.read_until(lambda: client.body(begun) == b"first")
        slow = await client.request("/echo", "POST", end=False)
        await client.until_reset(slow)  # So it has lasted for long enough.
        await client.upload(begun, b"late")
        await client.until_ended(begun)
        assert client.body(begun) == b"firstlate"
        assert it.counted.slow_bodies == 1


async def test_a_server_that_does_not_read_blames_nobody() -> None:
    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        await asyncio.sleep(3 * SOON)
        message = await receive()
        assert message["type"] == "http.request"
        await begin(send)
        await send({"type": "http.response.body", "body": message["body"], "more_body": False})

    async with (
        serving(asgi, limits=SLOW_BODY) as listener,
        H2Client.open(listener) as client,
    ):
        stream = await client.request("/", "POST", end=False)
        await client.upload(stream, b"in time")
        await client.until_ended(stream)
        assert client.body(stream) == b"in time"


async def test_what_is_sent_after_a_refusal_goes_nowhere() -> None:
    """An application may not care that its client has gone."""
    ended = asyncio.Event()

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        while (await receive())["type"] != "http.disconnect":
            pass
        assert (await receive())["type"] == "http.disconnect"
        await begin(send)
        await send({"type": "http.response.body", "body": b"late", "more_body": False})
        ended.set()

    async with (
        serving(asgi, limits=SLOW_BODY) as listener,
        H1Client.open(listener) as client,
    ):
        await client.send(POST + b"\r\n")
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert OWN_ID.encode() in answer
        assert answer.count(b"HTTP/1.1") == 1
        assert b"late" not in answer
        with anyio.fail_after(9):
            await ended.wait()


async def begin(send: ASGISendCallable) -> None:
    start: HTTPResponseStartEvent = {"type": "http.response.start", "status": 200, "headers": []}
    await send(start)


@given(
    first=st.integers(1, 10),
    window=st.integers(1, 10),
    rate=st.integers(1, 10),
    pieces=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=30),
)
def test_the_pace_of_a_body(
    first: int, window: int, rate: int, pieces: list[tuple[int, int]]
) -> None:
    """A body is given up after a wait that its last bytes, or the window, did not buy; and one that
    is never slower than the rate over a window is not."""
    limits = Limits(body_first_byte=first, body_rate_window=window, body_min_rate=rate)
    pace, waited, got = Pace(limits), 0, 0
    for seconds, size in pieces:
        if pace.left <= seconds:
            break
        pace.waited(seconds)
        pace.came(size)
        waited, got = waited + seconds, got + size
        assert waited <= first + window + got / rate
        assert pace.left <= max(first, window)
    steady = Pace(limits)
    for _ in range(50):
        assert steady.left > 0.5
        steady.waited(0.5)
        steady.came(rate)


@pytest.mark.parametrize("first", [3, 9])
def test_a_body_may_begin_late_and_not_go_on_late(first: int) -> None:
    pace = Pace(Limits(body_first_byte=first, body_rate_window=5, body_min_rate=10))
    pace.came(0)
    assert pace.left == first
    pace.waited(2)
    assert pace.left == first - 2
    pace.came(1)
    assert pace.left == 5
    pace.waited(4)
    pace.came(10)
    assert pace.left == 2


async def test_a_client_that_does_not_answer_has_vanished(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(peer_silence=SOON, peer_answer=SOON)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        await client.request("/silent")
        await it.tracker.until(lambda tracker: tracker.live == 1)
        await read_without_a_word(client)
        assert client.of(PingReceived)
        await it.tracker.until(lambda tracker: tracker.live == 0)
        assert it.numbers() == {"silent_peers": 1}


async def test_a_client_that_answers_is_there(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(peer_silence=SOON, peer_answer=10 * SOON)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        stream = await client.request("/silent")
        await client.read_until(lambda: len(client.of(PingReceived)) > 1)
        assert client.reset(stream) is None
        assert await client.get("/hi") == b"hi"
        assert not it.numbers()


async def test_a_reader_that_has_stalled_has_not_vanished(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Something waits for it, and how long that may is another limit."""
    limits = Limits(peer_silence=SOON, peer_answer=SOON)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        client.acknowledge = False
        stalled = await client.request("/flood")
        await client.read_until(lambda: len(client.body(stalled)) == 65_535)
        async with H2Client.open(it.listener) as other:
            await other.request("/silent")
            await read_without_a_word(other)
        client.h2.increment_flow_control_window(1000, stalled)
        client.h2.increment_flow_control_window(1000)
        await client.flush()
        await client.read_until(lambda: len(client.body(stalled)) == 66_535)
        assert not client.of(PingReceived)
        assert it.numbers() == {"silent_peers": 1}


async def read_without_a_word(client: H2Client) -> None:
    """Read to the end, and send nothing, as if it had been lost on its way."""
    with anyio.fail_after(9), suppress(ConnectionError):
        while data := await client.reader.read(65536):
            client.seen += client.h2.receive_data(data)


def test_the_system_watches_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        watched_by_the_system(server, Limits(peer_silence=7, peer_answer=4, stall_timeout=9.5))
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 7
            assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 2
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 19_000
    here, there = socket.socketpair()
    with here, there:
        watched_by_the_system(here, Limits())


@pytest.mark.parametrize("fault", [b"", frame(HEADERS, stream=2)])
async def test_a_client_that_is_sent_away_and_goes_on_talking(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault: bytes
) -> None:
    """For being idle, or for what it did: it is heard out for a while, and no longer."""
    monkeypatch.setattr("antiphon.transport.farewell.CHATTER_S", SOON)
    limits = Limits(first_request_timeout=99 if fault else SOON)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        client.writer.write(fault)
        with anyio.fail_after(9), suppress(ConnectionError):
            while it.counted.connections > 1:
                client.writer.write(frame(PING, bytes(8)))
                await client.writer.drain()
                await asyncio.sleep(SOON / 10)
        await client.read_to_end()
        assert len(client.goaways) == 1
