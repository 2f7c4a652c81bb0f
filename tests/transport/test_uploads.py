"""Bodies on their way in: what may wait, what their length is, and whose fault costs whom."""

from __future__ import annotations

import asyncio

import pytest
from h2.errors import ErrorCodes
from h2.events import PingAckReceived, StreamReset, WindowUpdated
from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPResponseStartEvent,
    Scope,
)
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.uptake import MOST, MUCH, Uptake
from transport.hosting import H1Client, H2Client, serving
from transport.scene import HEAD_END, scene
from transport.test_floods import DATA, END_HEADERS, END_STREAM, HEADERS, frame
from transport.test_slow_clients import code_of

SMALL = 65_535
"""The first window of a connection, and of a stream where nothing else is said."""


class Reluctant:
    """Applications that read no body until they are told to."""

    def __init__(self) -> None:
        self.read = asyncio.Event()
        self.leave = asyncio.Event()

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        size, more = 0, True
        if scope["path"] == "/never":
            await self.leave.wait()
            more = False
        elif scope["path"] == "/later":
            await self.read.wait()
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            size, more = size + len(message["body"]), message["more_body"]
        start: HTTPResponseStartEvent = {
            "type": "http.response.start",
            "status": 200,
            "headers": [],
        }
        await send(start)
        await send({"type": "http.response.body", "body": b"%d" % size, "more_body": False})


async def test_the_windows_are_those_of_the_settings() -> None:
    async with serving(Reluctant()) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.of(WindowUpdated)))
        assert client.h2.remote_settings.initial_window_size == DEFAULT_LIMITS.h2_initial_window
        window = client.h2.outbound_flow_control_window
        assert window == DEFAULT_LIMITS.h2_connection_window
        stream = await client.request("/", "POST", end=False)
        # Without waiting for anybody: more than HTTP/2 starts with.
        body = bytes(DEFAULT_LIMITS.h2_initial_window)
        for at in range(0, len(body), 16_384):
            client.h2.send_data(stream, body[at : at + 16_384])
        client.h2.end_stream(stream)
        await client.flush()
        await client.until_ended(stream)
        assert client.body(stream) == b"%d" % len(body)


async def test_a_body_longer_than_its_window_arrives_whole() -> None:
    limits = Limits(h2_initial_window=1000, h2_connection_window=100_000)
    async with serving(Reluctant(), limits=limits) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.of(WindowUpdated)))
        stream = await client.request("/", "POST", end=False)
        await client.upload(stream, bytes(30_000))
        await client.until_ended(stream)
        assert client.body(stream) == b"30000"


async def test_a_body_that_nobody_reads_holds_up_nobody() -> None:
    """No more of it than a window waits, and all else of its connection goes on."""
    app = Reluctant()
    limits = Limits(h2_initial_window=5000, h2_connection_window=2 * SMALL)
    async with serving(app, limits=limits) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.of(WindowUpdated)))
        later = await client.request("/later", "POST", end=False)
        for _ in range(50):
            client.h2.send_data(later, bytes(100))
        await client.flush()
        assert client.h2.local_flow_control_window(later) == 0
        for _ in range(3):
            stream = await client.request("/", "POST", end=False)
            await client.upload(stream, bytes(40_000))
            await client.until_ended(stream)
            assert client.body(stream) == b"40000"
        assert client.h2.local_flow_control_window(later) == 0
        app.read.set()
        await client.upload(later, bytes(7000))
        await client.until_ended(later)
        assert client.body(later) == b"12000"


@pytest.mark.parametrize("end", ["answer", "reset"])
async def test_the_window_of_what_nobody_has_read_comes_back(end: str) -> None:
    """Otherwise a few such bodies would shut the connection for all others. (h2 tells of it once
    that is half a window.)"""
    app = Reluctant()
    limits = Limits(h2_initial_window=SMALL - 1, h2_connection_window=SMALL)
    async with serving(app, limits=limits) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        for _ in range(4):
            app.leave.clear()
            stream = await client.request("/never", "POST", end=False)
            await client.upload(stream, bytes(30_000), end=False)
            if end == "answer":
                app.leave.set()
                await client.until_ended(stream)
                client.h2.end_stream(stream)
            else:
                client.h2.reset_stream(stream, ErrorCodes.CANCEL)
            await client.flush()
        assert not client.goaways


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(0, 9), st.booleans()),
        max_size=30,
    )
)
def test_every_byte_is_given_back_once(steps: list[tuple[int, int, int, bool]]) -> None:
    """By who takes it, or at the end of its stream; never before."""
    given_back = 0

    def to_all(size: int) -> None:
        nonlocal given_back
        assert size > 0
        given_back += size

    def to_one(size: int, stream_id: int) -> None:
        assert size > 0
        windows[stream_id] += size

    uptake, came, waiting = Uptake(to_all, to_one, 1), 0, dict.fromkeys((1, 2, 3), 0)
    windows, sent = dict.fromkeys(waiting, 0), dict.fromkeys(waiting, 0)
    for stream, data, padding, ends in steps:
        uptake.came(stream, data + padding, data)
        came += data + padding
        sent[stream] += data + padding
        waiting[stream] += data
        if taken := waiting[stream] // 2:
            uptake.taken(stream, taken)
            waiting[stream] -= taken
        if ends:
            uptake.end(stream)
            uptake.taken(stream, 5)  # Too late: it has been given back.
            waiting[stream] = 0
        assert given_back == came - sum(waiting.values())
    for stream in waiting:
        assert windows[stream] <= sent[stream] - waiting[stream]
        uptake.end(stream)
    assert windows == sent


CROWDED = Limits(h2_initial_window=SMALL, h2_connection_window=SMALL)
"""Less than half a megabyte is held of unfinished bodies, besides the oldest."""


async def push(client: H2Client, stream: int, size: int) -> int:
    """Send up to ``size`` bytes as long as the windows allow; how many were sent."""
    sent = patience = 0
    while sent < size and patience < 5 and client.reset(stream) is None:
        room = min(client.h2.local_flow_control_window(stream), size - sent, 16_384)
        if room:
            client.h2.send_data(stream, bytes(room))
            sent, patience = sent + room, 0
            await client.flush()
        else:
            patience += 1
            answers = len(client.of(PingAckReceived))
            client.h2.ping(bytes(8))
            await client.flush()
            await client.read_until(lambda: len(client.of(PingAckReceived)) > answers)  # noqa: B023
    return sent


async def test_unfinished_bodies_hold_so_much_and_then_come_one_after_the_other() -> None:
    size = 300_000
    async with serving(Reluctant(), limits=CROWDED) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        streams = [await client.request("/", "POST", end=False) for _ in range(8)]
        sent = {stream: await push(client, stream, size) for stream in streams}
        assert sent[streams[0]] == size
        others = sum(sent.values()) - size
        assert MUCH * SMALL < others <= MUCH * SMALL + len(streams) * SMALL
        for stream in streams:
            await client.upload(stream, bytes(size - sent[stream]))
            await client.until_ended(stream)
            assert client.body(stream) == b"%d" % size
        assert not client.goaways


async def test_the_latest_of_very_many_unfinished_bodies_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    size = 60_000
    async with scene(caplog, CROWDED) as it, H2Client.open(it.listener) as client:
        await client.read_until(lambda: bool(client.seen))
        sent: dict[int, int] = {}
        while not client.of(StreamReset):
            stream = await client.request("/echo", "POST", end=False)
            sent[stream] = await push(client, stream, size)
            assert len(sent) <= MOST * SMALL // size + 3
        answers = len(client.of(PingAckReceived))
        client.h2.ping(bytes(8))
        await client.flush()
        await client.read_until(lambda: len(client.of(PingAckReceived)) > answers)
        refused = [each.stream_id for each in client.of(StreamReset)]
        assert {*refused} <= {*list(sent)[-2:]}  # Another may have begun meanwhile.
        assert {client.reset(each) for each in refused} == {ErrorCodes.ENHANCE_YOUR_CALM}
        for stream in sent.keys() - refused:
            client.h2.end_stream(stream)
            await client.flush()
            await client.until_ended(stream)
            assert len(client.body(stream)) == sent[stream]
        assert it.numbers() == {"crowded_bodies": len(refused)}


async def test_one_body_may_be_longer_than_all_may_hold_together() -> None:
    size = 2 * MOST * SMALL
    async with serving(Reluctant(), limits=CROWDED) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        stream = await client.request("/", "POST", end=False)
        await client.upload(stream, bytes(size))
        await client.until_ended(stream)
        assert client.body(stream) == b"%d" % size


def head(length: int | None, *, path: str = "/echo") -> list[tuple[str, str]]:
    pseudo = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "x")]
    return pseudo if length is None else [*pseudo, ("content-length", str(length))]


@pytest.mark.parametrize(
    ("length", "frames"),
    [
        pytest.param(5, frame(DATA, b"xxxxxx", stream=3), id="longer"),
        pytest.param(5, frame(DATA, b"xxxx", stream=3, flags=END_STREAM), id="shorter"),
        pytest.param(5, frame(DATA, stream=3, flags=END_STREAM), id="empty"),
        pytest.param(
            5, frame(HEADERS, b"\0\1a\1b", stream=3, flags=END_STREAM | END_HEADERS), id="trailers"
        ),
        pytest.param(0, frame(DATA, b"x", stream=3), id="more than nothing"),
    ],
)
async def test_a_body_that_is_not_as_long_as_it_said(
    caplog: pytest.LogCaptureFixture, length: int, frames: bytes
) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        good, bad, other = (client.h2.get_next_available_stream_id() + 2 * n for n in range(3))
        client.h2.send_headers(good, head(2))
        client.h2.send_headers(bad, head(length))
        await client.flush()
        client.writer.write(frames)
        client.h2.send_headers(other, head(None))
        client.h2.send_data(other, b"other", end_stream=True)
        client.h2.send_data(good, b"ok", end_stream=True)
        await client.flush()
        await client.until_reset(bad)
        await client.until_ended(good, other)
        assert client.reset(bad) == ErrorCodes.PROTOCOL_ERROR
        assert client.status(bad) is None
        assert (client.body(good), client.body(other)) == (b"ok", b"other")
        assert not client.goaways
        assert it.numbers() == {"wrong_lengths": 1}


async def test_a_request_without_the_body_that_it_announces(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, head(5), end_stream=True)
        await client.flush()
        await client.until_reset(stream)
        assert client.reset(stream) == ErrorCodes.PROTOCOL_ERROR
        assert await client.get("/hi") == b"hi"
        assert it.tracker.entered == 0


async def test_bodies_of_wrong_length_are_resets_too(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(reset_burst=3, reset_rate=0)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        for _ in range(10):
            client.h2.send_headers(
                client.h2.get_next_available_stream_id(), head(5), end_stream=True
            )
        await client.flush()
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.ENHANCE_YOUR_CALM]
        assert it.numbers() == {"resets_too_many": 1, "wrong_lengths": 4}


FIELDS = {
    "long": [("x-long", "x" * 900)],
    "many": [(f"x-{n}", "") for n in range(11)],
}
SIZED = Limits(max_header_bytes=900, max_header_fields=10)


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("path", ["/hi", "/socket"])
async def test_a_large_header_block_in_one_write(
    caplog: pytest.LogCaptureFixture, kind: str, path: str
) -> None:
    """A handshake has one, too."""
    lines = [
        f"GET {path} HTTP/1.1",
        "host: x",
        *(f"{name}: {value}" for name, value in FIELDS[kind]),
    ]
    if path == "/socket":
        lines += ["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13",
                  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="]  # fmt: skip
    async with scene(caplog, SIZED) as it, H1Client.open(it.listener) as client:
        await client.send("\r\n".join([*lines, "x-request-id: mine", "", ""]).encode())
        answer = await client.until(b"}}")
        assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert code_of(answer) == "headers_too_large"
        assert b"x-request-id: mine" in answer
        assert it.numbers() == {"large_headers": 1}


async def test_a_target_counts_as_a_field_does(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog, SIZED) as it, H1Client.open(it.listener) as client:
        await client.send(b"GET /hi?%s HTTP/1.1\r\nhost: x\r\n\r\n" % (b"x" * 900))
        assert (await client.until(b"}}")).startswith(b"HTTP/1.1 431 ")
        # The connection has done nothing wrong.
        await client.send(b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.until(b"hi")).partition(HEAD_END)[2] == b"hi"


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("upload", [True, False])
async def test_a_large_header_block_costs_its_stream_alone(
    caplog: pytest.LogCaptureFixture, kind: str, upload: bool
) -> None:
    async with scene(caplog, SIZED) as it, H2Client.open(it.listener) as client:
        other = await client.request("/silent")
        method, path = ("POST", "/echo") if upload else ("GET", "/hi")
        large = client.queue(path, method, end=not upload, headers=FIELDS[kind])
        await client.flush()
        await client.until_ended(large)
        assert client.status(large) == "431"
        assert await client.get("/hi") == b"hi"
        assert client.reset(other) is None
        assert not client.goaways
        assert it.numbers() == {"large_headers": 1}
