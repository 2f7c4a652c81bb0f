"""What costs a client nothing: each flood ends its own connection and nobody else's."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import permutations

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, PingAckReceived
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.bucket import Bucket
from antiphon.transport.counted import Counted
from antiphon.transport.floods import Floods
from antiphon.transport.http2_connection import ServerH2
from antiphon.transport.http2_reading import TOGETHER
from antiphon.transport.limits import Limits
from transport.hosting import H1Client, H2Client, serving
from transport.scene import scene

CALM = ErrorCodes.ENHANCE_YOUR_CALM
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
UNKNOWN = 0xFA
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, payload: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    return (
        struct.pack(">HBBBL", len(payload) >> 8, len(payload) & 255, kind, flags, stream) + payload
    )


def few(burst: int = 5) -> Limits:
    """So many at once, and then none."""
    return Limits(reset_burst=burst, reset_rate=0, control_burst=burst, control_rate=0)


@pytest.mark.parametrize("in_one_write", [True, False])
async def test_streams_that_are_reset_at_once(
    caplog: pytest.LogCaptureFixture, in_one_write: bool
) -> None:
    async with scene(caplog, few()) as it, H2Client.open(it.listener) as client:
        await client.request("/silent")
        await it.tracker.until(lambda tracker: tracker.live == 1)
        for _ in range(20):
            if client.writer.is_closing() or client.eof:
                break
            client.h2.reset_stream(client.queue("/silent"), ErrorCodes.CANCEL)
            if not in_one_write:
                await client.flush()
        await client.flush()
        await client.read_to_end()
        assert client.goaways == [CALM]
        await it.tracker.until(lambda tracker: tracker.live == 0)
        assert it.tracker.entered <= 1 + 5
        assert it.numbers() == {"resets_too_many": 1}


async def test_resets_up_to_the_limit_and_those_of_answers_are_no_flood(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(caplog, few()) as it, H2Client.open(it.listener) as client:
        for _ in range(5):
            client.h2.reset_stream(client.queue("/silent"), ErrorCodes.CANCEL)
        for _ in range(10):
            upload = await client.request("/early", "POST", end=False)
            await client.until_ended(upload)
            client.h2.reset_stream(upload, ErrorCodes.CANCEL)
        assert await client.get("/hi") == b"hi"
        assert not it.numbers()


async def test_streams_that_the_server_is_made_to_reset(caplog: pytest.LogCaptureFixture) -> None:
    """By a window that is too large to be one."""
    async with scene(caplog, few()) as it, H2Client.open(it.listener) as client:
        for _ in range(6):
            stream = await client.request("/silent")
            await client.read_until(lambda: bool(client.of(DataReceived, stream)))  # noqa: B023
            client.writer.write(frame(WINDOW, struct.pack(">L", 2**31 - 1), stream))
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"resets_too_many": 1}


def request(stream: int, method: str = "GET", path: str = "/silent", *, end: bool = True) -> bytes:
    """A request whose header block leaves no trace in the table of the compression."""
    pairs = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
    block = Encoder().encode([(name, value, True) for name, value in pairs])
    return frame(HEADERS, block, stream=stream, flags=END_HEADERS | (END_STREAM if end else 0))


FATES = ("is refused", "is malformed", "breaks its length", "is unread")


@pytest.mark.parametrize("fates", [*permutations(FATES, 2), *permutations(FATES, 3)])
@pytest.mark.parametrize("by_client", [True, False])
async def test_whatever_becomes_of_streams_in_one_write_is_not_the_fault_of_others(
    caplog: pytest.LogCaptureFixture, fates: tuple[str, ...], by_client: bool
) -> None:
    """The client resets them as well, and h2 has forgotten them before we look at the first."""
    limits = Limits(h2_max_concurrent_streams=1 if "is refused" in fates else 100)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        neighbour = await client.request("/silent")
        await client.read_until(lambda: bool(client.of(DataReceived, neighbour)))
        writes, stream = b"", neighbour
        for fate in fates:
            stream += 2
            match fate:
                case "is refused":
                    writes += request(stream)
                case "is malformed":
                    writes += request(stream, path="/é")
                case "breaks its length":
                    writes += request(stream, "POST", "/echo", end=False)
                    writes += frame(DATA, b"x", stream=stream)
                case _:
                    writes += request(stream, "POST", "/early", end=False)
            writes += frame(RST, bytes(4), stream=stream) if by_client else b""
        client.writer.write(writes + request(stream + 2, path="/é") + frame(PING, bytes(8)))
        await client.read_until(lambda: bool(client.of(PingAckReceived)))
        assert client.reset(neighbour) is None
        assert not client.goaways
        assert "protocol_errors" not in it.numbers()


async def test_giving_up_a_body_whose_stream_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    """The oldest is given up for the next request, and the client has just reset it."""
    limits = Limits(h2_max_concurrent_streams=2)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        neighbour = await client.request("/silent")
        upload = await client.request("/early", "POST", end=False)
        await client.until_ended(upload)
        late = frame(RST, bytes(4), stream=upload)
        client.writer.write(request(upload + 2, path="/hi") + late + request(upload + 4, path="/é"))
        client.writer.write(frame(PING, bytes(8)))
        await client.read_until(lambda: bool(client.of(PingAckReceived)))
        assert client.reset(neighbour) is None
        assert not client.goaways


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(frame(PING, bytes(8)), id="PING"),
        pytest.param(frame(SETTINGS), id="SETTINGS"),
        pytest.param(frame(SETTINGS, struct.pack(">HL", 4, 1000)), id="SETTINGS of a window"),
        pytest.param(frame(DATA, stream=1), id="DATA without data"),
        pytest.param(frame(DATA, b"\x03000", stream=1, flags=8), id="DATA of padding"),
        pytest.param(frame(UNKNOWN, b"x"), id="unknown"),
        pytest.param(frame(RST, bytes(4), stream=3), id="RST_STREAM of one that is closed"),
    ],
)
async def test_frames_that_carry_nothing(caplog: pytest.LogCaptureFixture, control: bytes) -> None:
    async with scene(caplog, few(20)) as it, H2Client.open(it.listener) as client:
        upload = await client.request("/echo", "POST", end=False)
        closed = await client.request("/hi")
        assert (upload, closed) == (1, 3)
        await client.until_ended(closed)
        client.writer.write(10 * control)
        assert await client.get("/hi") == b"hi"
        assert not client.goaways
        client.writer.write(1_000 * control)
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert len(client.of(PingAckReceived)) <= 20
        assert it.numbers() == {"control_floods": 1}


LIGHT_FRAMES = [
    pytest.param(frame(PRIORITY, bytes(5), stream=101), id="PRIORITY"),
    pytest.param(frame(WINDOW, struct.pack(">L", 1)), id="WINDOW_UPDATE"),
    pytest.param(frame(WINDOW, struct.pack(">L", 1), stream=1), id="WINDOW_UPDATE of a stream"),
    pytest.param(frame(WINDOW, struct.pack(">L", 1), stream=3), id="WINDOW_UPDATE of none"),
    pytest.param(frame(DATA, b"x", stream=1), id="DATA of a byte"),
    pytest.param(frame(DATA, b"\0x", stream=1, flags=8), id="DATA of a byte and padding"),
    pytest.param(frame(DATA, b"x", stream=3), id="DATA for a stream that is over"),
    pytest.param(frame(DATA, bytes(500), stream=3), id="more DATA for a stream that is over"),
    pytest.param(frame(DATA, b"x", stream=3, flags=END_STREAM), id="its end"),
]


@pytest.mark.parametrize("light", LIGHT_FRAMES)
async def test_frames_that_need_no_answer_are_read_and_not_without_end(
    caplog: pytest.LogCaptureFixture, light: bytes
) -> None:
    async with scene(caplog, few(100)) as it, H2Client.open(it.listener) as client:
        assert await client.request("/echo", "POST", end=False) == 1
        over = await client.request("/silent", "POST", end=False)
        client.h2.reset_stream(over, ErrorCodes.CANCEL)
        await client.flush()
        client.writer.write(500 * light)
        assert await client.get("/hi") == b"hi"
        assert not client.goaways
        with suppress(ConnectionError):
            client.writer.write(2_000 * light)
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"control_floods": 1}


@pytest.mark.parametrize(
    "light",
    [
        pytest.param(frame(DATA, stream=1, flags=END_STREAM), id="DATA"),
        pytest.param(request(1), id="HEADERS"),
    ],
)
async def test_ends_and_trailers_of_streams_that_are_over(
    caplog: pytest.LogCaptureFixture, light: bytes
) -> None:
    """Each of them is answered by a reset."""
    async with scene(caplog, few(100)) as it, H2Client.open(it.listener) as client:
        client.h2.reset_stream(client.queue("/silent"), ErrorCodes.CANCEL)
        await client.flush()
        client.writer.write(80 * light)
        assert await client.get("/hi") == b"hi"
        client.writer.write(80 * light)
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"control_floods": 1}


async def test_windows_may_be_opened_as_often_as_data_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One of the stream and one of the connection for each 64 bytes that it reads."""
    async with scene(caplog, few(5)) as it, H2Client.open(it.listener, window=64) as client:
        stream = await client.request("/flood")
        await client.read_until(lambda: len(client.of(DataReceived, stream)) > 2_000)
        assert not client.goaways
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        await client.flush()
        assert await client.get("/hi") == b"hi"
        assert not it.numbers()


async def test_settings_that_nobody_knows(caplog: pytest.LogCaptureFixture) -> None:
    """They are no fault, and nothing of them is kept; but there are not so many."""
    async with scene(caplog, few(100)) as it, H2Client.open(it.listener) as client:
        client.writer.write(frame(SETTINGS, settings(range(1000, 1050))))
        assert await client.get("/hi") == b"hi"
        client.writer.write(frame(SETTINGS, settings(range(1000, 1100))))
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"control_floods": 1}


def settings(ids: Iterable[int]) -> bytes:
    return b"".join(struct.pack(">HL", each, 1) for each in ids)


def test_nothing_is_kept_of_settings_that_nobody_knows() -> None:
    limits, counted = Limits(control_burst=10**6), Counted()
    server = ServerH2(limits, counted, Floods(limits, counted, lambda: 0))
    server.initiate_connection()
    before = len(server.remote_settings)
    server.receive_data(PREFACE)
    for begin in range(16, 65_536, 2_700):
        ids = range(begin, min(begin + 2_700, 65_536))
        server.receive_data(frame(SETTINGS, settings(ids)))
    assert len(server.remote_settings) == before
    server.receive_data(frame(SETTINGS, settings([4])))
    assert server.remote_settings.initial_window_size == 1


@pytest.mark.parametrize(
    ("faulty", "code"),
    [
        pytest.param(
            frame(WINDOW, bytes(4), stream=3), ErrorCodes.PROTOCOL_ERROR, id="a window of nothing"
        ),
        pytest.param(
            frame(PRIORITY, struct.pack(">LB", 3, 1), stream=3),
            ErrorCodes.PROTOCOL_ERROR,
            id="to wait for itself",
        ),
        pytest.param(
            frame(PRIORITY, bytes(4), stream=3), ErrorCodes.FRAME_SIZE_ERROR, id="a short PRIORITY"
        ),
        pytest.param(
            frame(PRIORITY, bytes(6), stream=3), ErrorCodes.FRAME_SIZE_ERROR, id="a long PRIORITY"
        ),
    ],
)
async def test_a_fault_of_one_stream_costs_that_stream(
    caplog: pytest.LogCaptureFixture, faulty: bytes, code: ErrorCodes
) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        one, two = await client.request("/silent"), await client.request("/silent")
        assert (one, two) == (1, 3)
        for byte in range(len(faulty)):  # However it is cut.
            client.writer.write(faulty[byte : byte + 1])
            await client.writer.drain()
        await client.until_reset(two)
        assert client.reset(two) == code
        client.writer.write(faulty)  # It may be under way when the stream has ended.
        assert await client.get("/hi") == b"hi"
        assert client.reset(one) is None
        assert not client.goaways
        assert not it.numbers()


async def test_a_request_that_waits_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        one, two = client.queue("/silent"), client.queue("/silent")
        client.h2.clear_outbound_data_buffer()
        for stream in (one, two):
            block = struct.pack(">LB", two, 0) + request(stream)[9:]
            flags = END_STREAM | END_HEADERS | 0x20
            client.writer.write(frame(HEADERS, block, stream=stream, flags=flags))
        await client.until_begun(one)
        await client.until_reset(two)
        assert client.reset(two) == ErrorCodes.PROTOCOL_ERROR
        assert not client.goaways
        assert it.tracker.entered == 1


async def test_faults_of_streams_are_resets_too(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog, few()) as it, H2Client.open(it.listener) as client:
        for _ in range(6):
            stream = await client.request("/silent")
            client.writer.write(frame(PRIORITY, bytes(4), stream=stream))
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"resets_too_many": 1}


async def test_a_window_of_nothing_for_a_stream_that_never_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        client.writer.write(frame(WINDOW, bytes(4), stream=99))
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.PROTOCOL_ERROR]
        assert it.numbers() == {"protocol_errors": 1}


async def test_streams_above_the_limit_without_end(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(h2_max_concurrent_streams=1, control_burst=10, control_rate=0)
    async with scene(caplog, limits) as it, H2Client.open(it.listener) as client:
        client.h2.remote_settings = Settings(
            client=False, initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: 1000}
        )
        for _ in range(100):
            client.queue("/silent")
        await client.flush()
        await client.read_to_end()
        assert client.goaways == [CALM]
        numbers = it.numbers()
        assert numbers.pop("refused_streams") <= 11
        assert numbers == {"control_floods": 1}


@pytest.mark.parametrize("size", [0, 1, 1000])
async def test_a_header_block_that_goes_on_and_on(
    caplog: pytest.LogCaptureFixture, size: int
) -> None:
    """It is neither kept nor decoded, whether its pieces are many or large."""
    async with scene(caplog, Limits(max_header_bytes=1000)) as it, H1Client.open(it.listener) as at:
        begin = PREFACE + frame(SETTINGS) + frame(HEADERS, b"\x82", stream=1, flags=END_STREAM)
        await at.send(begin + 100 * frame(CONTINUATION, b"\x82" * size, stream=1))
        end = (await at.rest())[-17:]
        assert end[3] == 7  # GOAWAY
        assert end[-4:] == struct.pack(">L", CALM)
        assert it.numbers() == {"continuation_floods": 1}


async def test_a_small_header_block_that_becomes_a_large_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One long field in the table of the compression, and a thousand bytes that each name it."""
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        head = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        encoder = Encoder()
        first = encoder.encode([*head, ("x-long", "x" * 4000)])
        second = encoder.encode([*head, *[("x-long", "x" * 4000)] * 1000])
        assert len(second) < 2000
        client.writer.write(frame(HEADERS, first, stream=1, flags=END_STREAM | END_HEADERS))
        client.writer.write(frame(HEADERS, second, stream=3, flags=END_STREAM | END_HEADERS))
        await client.read_to_end()
        assert client.goaways == [CALM]
        assert it.numbers() == {"protocol_errors": 1}


@pytest.mark.parametrize(
    "preface",
    [b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxx"],
)
async def test_a_preface_that_is_none(caplog: pytest.LogCaptureFixture, preface: bytes) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(preface)
        end = (await client.rest())[-17:]
        assert end[3] == 7
        assert it.numbers() == {"protocol_errors": 1}


@given(
    burst=st.integers(1, 5),
    rate=st.integers(0, 3),
    gaps=st.lists(st.integers(0, 4), max_size=40),
)
def test_a_bucket_gives_its_burst_and_its_rate(burst: int, rate: int, gaps: list[int]) -> None:
    """In no stretch of time more than both; and one that asks no faster is never refused."""
    bucket, now, taken = Bucket(burst, rate, 0), 0, []
    for gap in gaps:
        now += gap
        if bucket.take(now):
            taken.append(now)
    for index, begin in enumerate(taken):
        for count, end in enumerate(taken[index:], start=1):
            assert count <= burst + rate * (end - begin)
    patient = Bucket(1, 1, 0)
    assert all(patient.take(second) for second in range(len(gaps)))


async def test_a_client_that_asks_on_and_on_and_never_reads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What it is to be told waits in the server, and not without a limit."""
    limits = Limits(control_burst=10**9, connection_high=100_000)
    async with scene(caplog, limits) as it, H2Client.open(it.listener, window=2**30) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.h2.increment_flow_control_window(2**30)
        await client.request("/flood")
        await it.tracker.until(lambda tracker: tracker.live == 1)
        with suppress(ConnectionError):
            while not it.counted.deaf_peers:
                client.writer.write(1000 * frame(PING, bytes(8)))
                await client.writer.drain()
        await it.tracker.until(lambda tracker: tracker.live == 0)
        assert it.numbers() == {"deaf_peers": 1}


async def test_requests_of_one_write_begin_in_many_turns() -> None:
    """The loop belongs to the others, too: a thousand handlers do not begin at once."""
    turns: list[int] = []
    turn, ends = 0, False
    app = Empty(lambda: turns.append(turn))

    def tick() -> None:
        nonlocal turn
        turn += 1
        if not ends:
            asyncio.get_running_loop().call_soon(tick)

    async with serving(app) as listener, H2Client.open(listener) as client:
        tick()
        streams = [client.queue("/") for _ in range(500)]
        await client.flush()
        await client.until_ended(*streams)
        ends = True
        assert len(turns) == 500
        assert max(map(turns.count, turns)) <= 2 * TOGETHER


async def test_a_connection_that_ends_between_its_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of those that had not begun none does."""
    async with scene(caplog, few()) as it, H1Client.open(it.listener) as at:
        requests = [request(stream) for stream in range(1, 200, 2)]
        await at.send(PREFACE + frame(SETTINGS) + b"".join(requests))
        await it.tracker.until(lambda tracker: tracker.live > 0)
        at.writer.transport.abort()
        await it.tracker.until(lambda tracker: tracker.live == 0)
        assert not it.numbers()


async def test_however_little_may_be_queued_control_frames_may() -> None:
    limits = Limits(connection_high=1)
    async with serving(Empty(), limits=limits) as listener, H2Client.open(listener) as client:
        for _ in range(3):
            client.h2.ping(bytes(8))
            streams = [client.queue("/") for _ in range(10)]
            await client.flush()
            await client.until_ended(*streams)


class Empty:
    """Answers with nothing, and tells of it."""

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self._tell = tell

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        self._tell()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
