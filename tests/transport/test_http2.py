"""HTTP/2 over real sockets: what one stream does never costs another, and every stream ends."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator

import anyio
import pytest
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    PingAckReceived,
    ResponseReceived,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes, Settings
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPResponseStartEvent, Scope
from hyperframe.frame import GoAwayFrame
from quart import Quart, Response, request

from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from transport.hosting import H2Client, Tracker, quart_app, serving
from transport.scene import scene

MANY = 10_000


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def ticks() -> Tracker:
    """``left`` counts the chunks that all streams of /ticking have produced."""
    return Tracker()


@pytest.fixture
def app(tracker: Tracker, ticks: Tracker) -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.get("/silent")
    async def silent() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                yield b"first"
                await anyio.sleep_forever()

        return Response(body())

    @app.get("/waiting")
    async def waiting() -> str:
        with tracker:
            await anyio.sleep_forever()
        return "never"

    @app.get("/flood")
    async def flood() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                while True:
                    with ticks:
                        yield bytes(1024)

        return Response(body())

    @app.get("/breaks")
    async def breaks() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            raise ValueError("in the middle")

        return Response(body())

    @app.get("/sized/<int:size>")
    async def sized(size: int) -> bytes:
        return bytes(size)

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 400

    @app.post("/echo")
    async def echo() -> str | bytes:
        return await request.get_data(as_text=False)

    return app


async def test_data_after_a_reset_harms_nobody(
    app: Quart, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.unread.QUIET_S", 0)
    async with serving(app) as listener, H2Client.open(listener) as client:
        neighbour = await client.request("/silent")
        upload = await client.request("/early", "POST", end=False)
        await client.until_reset(upload)
        assert client.status(upload) == "400"
        assert client.body(upload) == b"no"
        assert client.ended(upload)
        assert client.reset(upload) == ErrorCodes.NO_ERROR
        # By hand: the library will not send on a stream that has been reset, a network will.
        for _ in range(10):
            client.writer.write(struct.pack(">HBBBL", 0, 232, 0, 0, upload) + b"x" * 232)
        assert await client.get("/hi") == b"hi"
        assert client.reset(neighbour) is None
        assert tracker.live == 1
        assert not client.goaways


async def test_an_answer_that_breaks_off_is_reset(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        broken = await client.request("/breaks")
        await client.until_reset(broken)
        assert client.reset(broken) == ErrorCodes.INTERNAL_ERROR
        assert client.body(broken) == b"first"
        assert not client.ended(broken)
        assert await client.get("/hi") == b"hi"


async def test_a_connection_that_goes_ends_all_its_handlers(app: Quart, tracker: Tracker) -> None:
    async with serving(app) as listener:
        async with H2Client.open(listener) as client:
            for _ in range(20):
                client.queue("/silent")
            await client.flush()
            await tracker.until(lambda it: it.live == 20)
        await tracker.until(lambda it: it.left == 20)


async def test_a_reset_stream_ends_its_handler_alone(app: Quart, tracker: Tracker) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        first, second = client.queue("/silent"), client.queue("/silent")
        await client.flush()
        await tracker.until(lambda it: it.live == 2)
        client.h2.reset_stream(first, ErrorCodes.CANCEL)
        await client.flush()
        await tracker.until(lambda it: it.left == 1)
        assert await client.get("/hi") == b"hi"
        assert tracker.live == 1
        assert client.reset(second) is None


async def test_a_malformed_frame_ends_the_connection_and_its_handlers(
    app: Quart, tracker: Tracker
) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        for _ in range(5):
            client.queue("/silent")
        await client.flush()
        await tracker.until(lambda it: it.live == 5)
        client.writer.write(b"\x00\x00\x05\x00\x00\x00\x00\x00\x00xxxxx")  # DATA on stream 0
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.PROTOCOL_ERROR]
        await tracker.until(lambda it: it.left == 5)


@pytest.mark.parametrize("place", ["http2_reading.malformed", "http2_sending.Outgoing.frames"])
async def test_a_fault_of_our_own_is_a_goaway_and_no_handler_stays(
    app: Quart,
    tracker: Tracker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
) -> None:
    """In the reading task, and in the sending one."""

    def fail(*_: object) -> None:
        raise RuntimeError("a fault of our own")

    async with serving(app) as listener, H2Client.open(listener) as client:
        await client.request("/silent")
        await client.read_until(lambda: bool(client.of(DataReceived)))
        monkeypatch.setattr(f"antiphon.transport.{place}", fail)
        await client.request("/sized/10")
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.INTERNAL_ERROR]
        await tracker.until(lambda it: it.left == 1)
    assert caplog.text.count("RuntimeError: a fault of our own") == 1


async def test_a_fault_that_ends_every_task_leaves_no_handler(
    app: Quart, tracker: Tracker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last resort: a task of the connection fails where nobody catches it."""

    async def fail(*_: object) -> None:
        raise RuntimeError("a fault of our own")

    async with serving(app) as listener, H2Client.open(listener) as client:
        for path in ("/silent", "/waiting", "/flood"):
            await client.request(path)
        await tracker.until(lambda it: it.live == 3)
        monkeypatch.setattr("antiphon.transport.http2.AntiphonH2._answered", fail)
        await client.request("/hi")
        await client.read_to_end()
        await tracker.until(lambda it: it.left == 3)
    assert "a fault of our own" in caplog.text


async def test_no_number_of_requests_ends_a_connection(app: Quart, tracker: Tracker) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        neighbour = await client.request("/silent")
        for _ in range(15):
            streams = [client.queue("/hi") for _ in range(100)]
            await client.flush()
            await client.until_ended(*streams)
            client.seen = [event for event in client.seen if isinstance(event, StreamReset)]
        assert not client.goaways
        assert client.reset(neighbour) is None
        assert tracker.live == 1


async def test_a_burst_on_a_fresh_connection(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        ignore_limit(client)
        streams = [client.queue("/hi") for _ in range(200)]
        await client.flush()
        await client.until_ended(*streams)
        assert {client.body(each) for each in streams} == {b"hi"}


def ignore_limit(client: H2Client) -> None:
    """Send as if the server's SETTINGS had not been read yet."""
    client.h2.remote_settings = Settings(
        client=False, initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: MANY}
    )


async def test_the_stream_above_the_limit_is_refused_alone(app: Quart, tracker: Tracker) -> None:
    five = Limits(h2_max_concurrent_streams=5)
    async with serving(app, limits=five) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        assert client.h2.remote_settings.max_concurrent_streams == 5
        ignore_limit(client)
        streams = [client.queue("/silent") for _ in range(8)]
        await client.flush()
        await client.read_until(lambda: all(client.reset(each) for each in streams[5:]))
        assert [client.reset(each) for each in streams] == [
            *[None] * 5,
            *[ErrorCodes.REFUSED_STREAM] * 3,
        ]
        await tracker.until(lambda it: it.live == 5)
        client.h2.reset_stream(streams[0], ErrorCodes.CANCEL)
        await client.flush()
        await tracker.until(lambda it: it.left == 1)
        assert await client.get("/hi") == b"hi"
        assert not client.goaways


async def test_the_advertised_limit_is_real(app: Quart, tracker: Tracker) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        limit = DEFAULT_LIMITS.h2_max_concurrent_streams
        assert client.h2.remote_settings.max_concurrent_streams == limit
        for _ in range(limit):
            client.queue("/silent")
        await client.flush()
        await tracker.until(lambda it: it.live == limit)
        assert not client.of(StreamReset)


async def test_priorities_are_ignored(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        for number in range(1500):
            stream_id = 2 * number + 101
            client.writer.write(struct.pack(">HBBBLLB", 0, 5, 2, 0, stream_id, 0, 15))
        assert await client.get("/hi") == b"hi"


async def test_opened_and_reset_1500_times_in_one_write(app: Quart, tracker: Tracker) -> None:
    patient = Limits(reset_burst=1500)
    async with serving(app, limits=patient) as listener, H2Client.open(listener) as client:
        await client.request("/silent")
        await tracker.until(lambda it: it.live == 1)
        for _ in range(1500):
            client.h2.reset_stream(client.queue("/silent"), ErrorCodes.CANCEL)
        await client.flush()
        assert await client.get("/hi") == b"hi"
        assert not client.goaways


@pytest.mark.parametrize("window", [0, 1000, None])
async def test_a_shut_window_holds_the_handler(
    app: Quart, ticks: Tracker, window: int | None
) -> None:
    """Whatever the client's window, no more than the high-water mark waits in the server."""
    async with serving(app) as listener, H2Client.open(listener, window=window) as client:
        client.acknowledge = False
        flood = await client.request("/flood")
        first = 65_535 if window is None else window
        await client.read_until(lambda: len(client.body(flood)) >= first)
        # Several round trips in which a handler that is not held would produce a lot more.
        for _ in range(5):
            answer = await client.request("/hi")
            await client.until_begun(answer)
        assert ticks.entered * 1024 <= first + DEFAULT_LIMITS.stream_high + 2 * 1024
        assert len(client.body(flood)) == first
        produced = ticks.entered
        client.h2.increment_flow_control_window(50_000, flood)
        client.h2.increment_flow_control_window(60_000)
        await client.flush()
        await client.read_until(lambda: len(client.body(flood)) == first + 50_000)
        await ticks.until(lambda it: it.entered > produced)


async def test_a_window_made_smaller_than_nothing_recovers(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener, window=20_000) as client:
        client.acknowledge = False
        stream = await client.request("/sized/40000")
        await client.read_until(lambda: len(client.body(stream)) == 20_000)
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 5_000})
        await client.flush()
        assert await client.get("/hi") == b"hi"
        assert len(client.body(stream)) == 20_000
        client.h2.increment_flow_control_window(40_000, stream)
        await client.flush()
        await client.until_ended(stream)
        assert client.body(stream) == bytes(40_000)


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000])
async def test_bodies_are_whole(app: Quart, size: int) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        assert await client.get(f"/sized/{size}") == bytes(size)


async def test_uploads_arrive_whole(app: Quart) -> None:
    body = bytes(range(256)) * 1000
    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/echo", "POST", end=False)
        await client.upload(stream, body)
        await client.until_ended(stream)
        assert client.body(stream) == body


async def test_requests_no_application_can_take_are_reset_alone(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        tunnel = client.h2.get_next_available_stream_id()
        client.h2.send_headers(tunnel, [(":method", "CONNECT"), (":authority", "x:1")])
        crooked = client.h2.get_next_available_stream_id()
        head = [(b":method", b"GET"), (b":path", b"/\xff"), (b":scheme", b"http")]
        client.h2.send_headers(crooked, [*head, (b":authority", b"x")], end_stream=True)
        await client.flush()
        assert await client.get("/hi") == b"hi"
        assert client.reset(tunnel) == ErrorCodes.HTTP_1_1_REQUIRED
        assert client.reset(crooked) == ErrorCodes.PROTOCOL_ERROR


async def test_head_has_no_body(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/hi", "HEAD")
        await client.until_ended(stream)
        assert client.body(stream) == b""
        assert client.status(stream) == "200"


async def test_trailers_follow_the_body() -> None:
    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        start: HTTPResponseStartEvent = {
            "type": "http.response.start",
            "status": 200,
            "headers": [],
            "trailers": True,
        }
        await send(start)
        await send({"type": "http.response.body", "body": b"body", "more_body": False})
        await send(
            {"type": "http.response.trailers", "headers": [(b"sum", b"4")], "more_trailers": False}
        )

    async with serving(asgi) as listener, H2Client.open(listener) as client:
        stream = client.queue("/", headers=[("te", "trailers")])
        await client.flush()
        await client.until_ended(stream)
        assert client.body(stream) == b"body"
        (trailers,) = client.of(TrailersReceived, stream)
        assert dict(trailers.headers) == {b"sum": b"4"}


async def test_headers_name_the_server_once(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/hi")
        await client.until_ended(stream)
        (response,) = client.of(ResponseReceived, stream)
        names = [bytes(name) for name, _ in response.headers]
        assert names.count(b"server") == names.count(b"date") == 1
        assert b"connection" not in names


def goodbye(code: ErrorCodes = ErrorCodes.NO_ERROR) -> bytes:
    return GoAwayFrame(0, last_stream_id=0, error_code=code).serialize()


async def test_a_client_that_says_goodbye_reads_its_answers_to_their_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RFC 9113, section 6.8. What it opens after that is not taken."""
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        one = await client.request("/begun", "POST", end=False)
        two = await client.request("/begun", "POST", end=False)
        await client.read_until(lambda: client.body(one) == client.body(two) == b"first")
        client.writer.write(goodbye() + goodbye())
        late = await client.request("/hi")
        await client.until_reset(late)
        assert client.reset(late) == ErrorCodes.REFUSED_STREAM
        for stream in (one, two):
            await client.upload(stream, b"last")
            await client.until_ended(stream)
            assert client.body(stream) == b"firstlast"
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.NO_ERROR]
        assert it.numbers() == {"refused_streams": 1}


@pytest.mark.parametrize("reset", [True, False])
async def test_after_a_goodbye_the_last_stream_ends_the_connection(
    caplog: pytest.LogCaptureFixture, reset: bool
) -> None:
    """Also one that the client resets, or one that is answered and whose body still comes."""
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        if reset:
            stream = await client.request("/silent")
            await client.until_begun(stream)
        else:
            stream = await client.request("/early", "POST", end=False)
            await client.until_ended(stream)
        client.writer.write(goodbye())
        client.h2.ping(bytes(8))
        await client.flush()
        await client.read_until(lambda: bool(client.of(PingAckReceived)))
        assert not client.goaways
        if reset:
            client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        else:
            client.h2.end_stream(stream)
        await client.flush()
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.NO_ERROR]
        assert not it.numbers()


async def test_a_goodbye_without_streams_is_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        assert await client.get("/hi") == b"hi"
        client.writer.write(goodbye())
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.NO_ERROR]


async def test_a_goodbye_for_an_error_ends_all(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        stream = await client.request("/silent")
        await client.until_begun(stream)
        client.writer.write(goodbye(ErrorCodes.PROTOCOL_ERROR))
        await client.read_to_end()
        await it.tracker.until(lambda tracker: tracker.live == 0)
