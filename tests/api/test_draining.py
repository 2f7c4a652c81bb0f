"""A server that ends, over real sockets: what is open, what is new, and who is heard."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from h2 import events as h2_events
from h2.config import H2Configuration
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import Finish
from api.hosted import BODIES, CHAT, COMPLETIONS, JSON, PROTOCOLS, RESPONSES, Hosted, hosted
from api.sse import events
from api.test_error_table import error_of
from transport.hosting import GUARD_S, H1Client, H2Client, PatientH2

LONG_S = 600.0
"""Time that no test takes."""
ENDLESS = 2**24
"""A window that nothing here fills."""


def streamed(path: str) -> dict[str, Any]:
    return {**BODIES[path], "stream": True}


async def begun(host: Hosted, pieces: AsyncIterator[bytes]) -> bytes:
    """What a stream has brought once it has said something."""
    data = b""
    host.engine.say(host.engine.requests[-1].key, b"one ")
    while b"one " not in data:
        data += await anext(pieces)
    return data


def finish(host: Hosted) -> None:
    """The last words of the newest answer, by itself."""
    key = host.engine.requests[-1].key
    host.engine.rows(lambda frame: frame.row(key, b"two", finish=Finish.STOP))


def assert_whole(data: bytes) -> None:
    """A stream that ended well, and once."""
    assert data.count(b"data: [DONE]") == 1
    assert b'"error"' not in data.replace(b'"error":null', b"")
    assert events(data)[-1][1] == "[DONE]" or data.rstrip().endswith(b"data: [DONE]")


def assert_failed(data: bytes) -> None:
    """A stream that was ended by the server's own end: one terminal event, then the mark."""
    assert data.count(b"data: [DONE]") == 1
    assert data.rstrip().endswith(b"data: [DONE]")
    assert b"shutting down" in data
    assert b'"finish_reason":"' not in data


async def draining(host: Hosted) -> None:
    """Tell the server to end, and wait until it has heard it."""
    host.ending.ask()
    with anyio.fail_after(GUARD_S):
        while not host.service.fanout.closed:
            await anyio.lowlevel.checkpoint()


async def assert_heard(client: httpx.AsyncClient, protocol: str) -> None:
    """Probes and reads are answered, new work is refused."""
    for path in ("/ready", "/health"):
        probed = await client.get(path)
        assert (probed.status_code, probed.json()) == (503, {"status": "draining"})
    for path in ("/live", "/version", "/metrics", "/v1/models", "/v1/models/m"):
        assert (await client.get(path)).status_code == 200
    counted = await client.post("/tokenize", json={"prompt": "hi"})
    assert counted.status_code == 200
    for path in (CHAT, COMPLETIONS, RESPONSES):
        refused = await client.post(path, json=streamed(path))
        assert (refused.status_code, error_of(refused)["code"]) == (503, "shutting_down")
        assert int(refused.headers["retry-after"]) >= 1
        assert int(refused.headers["retry-after-ms"]) >= 1
        assert refused.headers["x-should-retry"] == "true"
        assert refused.headers.get("connection") == ("close" if protocol == "HTTP/1.1" else None)


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param else None


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_open_stream_ends_by_itself_and_everybody_is_heard_meanwhile(
    protocol: str, tls: Path | None
) -> None:
    async with (
        hosted(grace_s=LONG_S, tls=tls) as host,
        host.client(protocol) as old,
        host.client(protocol) as new,
    ):
        port = host.listener.port
        async with old.stream("POST", CHAT, json=streamed(CHAT)) as response:
            pieces = response.aiter_bytes()
            data = await begun(host, pieces)
            await draining(host)
            await assert_heard(old, protocol)  # over HTTP/2 on the connection of the stream
            await assert_heard(new, protocol)
            assert not host.ended.is_set()
            finish(host)
            async for piece in pieces:
                data += piece
        assert_whole(data)
        await host.until_ended()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("again", [False, True], ids=["deadline", "asked-again"])
async def test_a_stream_that_does_not_end_gets_its_last_words(
    again: bool, path: str, protocol: str, tls: Path | None
) -> None:
    async with (
        hosted(grace_s=LONG_S if again else 0.01, tls=tls) as host,
        host.client(protocol) as client,
    ):
        async with client.stream("POST", path, json=streamed(path)) as response:
            pieces = response.aiter_bytes()
            data = await begun(host, pieces)
            await draining(host)
            if again:
                host.ending.ask_again()
            async for piece in pieces:
                data += piece
        assert_failed(data)
        await host.until_ended()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("again", [False, True], ids=["deadline", "asked-again"])
async def test_a_body_that_is_not_ready_becomes_a_refusal(again: bool, protocol: str) -> None:
    answers: list[httpx.Response] = []
    async with (
        hosted(grace_s=LONG_S if again else 0.01) as host,
        host.client(protocol) as client,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            answers.append(await client.post(CHAT, json=BODIES[CHAT]))

        tasks.start_soon(ask)
        await host.engine.until(lambda: bool(host.engine.requests))
        await draining(host)
        if again:
            host.ending.ask_again()
        await host.until_ended()
    assert (answers[0].status_code, error_of(answers[0])["code"]) == (503, "shutting_down")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_gets_ready_is_delivered(protocol: str) -> None:
    answers: list[httpx.Response] = []
    async with (
        hosted(grace_s=LONG_S) as host,
        host.client(protocol) as client,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            answers.append(await client.post(CHAT, json=BODIES[CHAT]))

        tasks.start_soon(ask)
        await host.engine.until(lambda: bool(host.engine.requests))
        await draining(host)
        finish(host)
        await host.until_ended()
    assert answers[0].json()["choices"][0]["message"]["content"] == "two"


async def connected(
    host: Hosted, receive: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A new connection whose system takes ``receive`` bytes at once."""
    sock = socket.socket()
    if receive is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", host.listener.port))
    options: dict[str, Any] = {}
    if host.trust is not None:
        host.trust.set_alpn_protocols(["h2"])
        options = {"ssl": host.trust, "server_hostname": "localhost"}
    return await asyncio.open_connection(sock=sock, limit=1024, **options)


@pytest.mark.parametrize("again", [False, True], ids=["by-themselves", "asked-again"])
async def test_streams_of_one_connection_that_end_together_are_all_read(
    again: bool, tls: Path | None
) -> None:
    """httpx drops what it has not looked at yet when it hears that the connection ends."""
    answers: list[bytes] = []
    async with hosted(grace_s=LONG_S, tls=tls) as host, host.client("HTTP/2") as client:

        async def ask() -> None:
            async with client.stream("POST", CHAT, json=streamed(CHAT)) as response:
                answers.append(await response.aread())

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)
            await host.engine.until(lambda: len(host.engine.requests) == 8)
            keys = [request.key for request in host.engine.requests]

            def step(text: bytes, finish: Finish = Finish.NONE) -> None:
                def rows(frame: FrameBuilder) -> None:
                    for key in keys:
                        frame.row(key, text, finish=finish)

                host.engine.rows(rows)

            step(b"one ")
            await draining(host)
            if again:
                host.ending.ask_again()
            else:
                step(b"two", Finish.STOP)
        await host.until_ended()
    assert len(answers) == 8
    for data in answers:
        (assert_failed if again else assert_whole)(data)


@asynccontextmanager
async def raw_h2(
    host: Hosted, *, window: int | None = None, receive: int | None = None
) -> AsyncIterator[H2Client]:
    """A connection of frames; ``window`` is that of each stream and of the connection."""
    reader, writer = await connected(host, receive)
    connection = PatientH2(H2Configuration(client_side=True))
    if window is not None:
        connection.local_settings = Settings(
            client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
    connection.initiate_connection()
    if window is not None and window > 2**16:
        connection.increment_flow_control_window(window)
    client = H2Client(reader, writer, connection)
    await client.flush()
    try:
        yield client
    finally:
        await client.close()


async def post(client: H2Client, path: str, body: dict[str, Any]) -> int:
    stream = client.queue(path, "POST", end=False, headers=JSON.items())
    client.h2.send_data(stream, json.dumps(body).encode(), end_stream=True)
    await client.flush()
    return stream


def end_is_before_goaway(client: H2Client, *streams: int) -> bool:
    kinds = [
        event.stream_id if isinstance(event, h2_events.StreamEnded) else "goaway"
        for event in client.seen
        if isinstance(event, h2_events.StreamEnded | h2_events.ConnectionTerminated)
    ]
    return kinds == [*sorted(streams, key=kinds.index), "goaway"]


async def test_the_goaway_comes_after_the_end_of_the_last_stream(tls: Path | None) -> None:
    async with hosted(grace_s=LONG_S, tls=tls) as host, raw_h2(host) as client:
        first = await post(client, CHAT, streamed(CHAT))
        await client.until_begun(first)
        second = await post(client, CHAT, streamed(CHAT))
        await client.until_begun(second)
        await draining(host)
        finish(host)
        await client.until_ended(second)
        probe = await client.request("/ready")
        await client.until_ended(probe)
        assert client.status(probe) == "503"
        assert not client.goaways
        key = host.engine.requests[0].key
        host.engine.rows(lambda frame: frame.row(key, b"two", finish=Finish.STOP))
        await client.read_to_end()
        assert end_is_before_goaway(client, first, second, probe)
        assert client.goaways == [0]
        (goaway,) = client.of(h2_events.ConnectionTerminated)
        assert goaway.last_stream_id == probe
        for stream in (first, second):
            assert_whole(client.body(stream))
        await host.until_ended()


@pytest.mark.parametrize("turns", range(-6, 7))
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_that_ends_just_as_the_drain_does_is_whole(
    protocol: str, turns: int
) -> None:
    """The answer ends so many turns of the loop before or after the word."""
    async with hosted(grace_s=LONG_S) as host:
        acts: list[Callable[[], None]] = [host.ending.ask, lambda: finish(host)]
        if turns < 0:
            acts.reverse()

        async def act() -> None:
            acts[0]()
            for _ in range(abs(turns)):
                await asyncio.sleep(0)
            acts[1]()

        if protocol == "HTTP/2":
            async with raw_h2(host) as client:
                stream = await post(client, CHAT, streamed(CHAT))
                await client.until_begun(stream)
                await act()
                await client.read_to_end()
                assert end_is_before_goaway(client, stream)
                data = client.body(stream)
        else:
            async with (
                host.client() as plain,
                plain.stream("POST", CHAT, json=streamed(CHAT)) as response,
            ):
                await act()
                data = await response.aread()
        assert_whole(data)
        await host.until_ended()


@pytest.mark.parametrize("again", [False, True], ids=["deadline", "asked-again"])
async def test_a_client_that_reads_nothing_is_reset_and_holds_nobody(
    again: bool, tls: Path | None
) -> None:
    async with (
        hosted(grace_s=LONG_S if again else 0.01, tls=tls) as host,
        raw_h2(host, window=10) as stuck,
        raw_h2(host) as sound,
    ):
        shut = await post(stuck, CHAT, streamed(CHAT))
        await stuck.until_begun(shut)
        read = await post(sound, CHAT, streamed(CHAT))
        await sound.until_begun(read)
        stuck.acknowledge = False
        await draining(host)
        if again:
            host.ending.ask_again()
        await sound.read_to_end()
        assert_failed(sound.body(read))
        assert end_is_before_goaway(sound, read)
        await stuck.read_to_end()
        assert stuck.reset(shut) == 2  # INTERNAL_ERROR: nobody takes it for the end
        assert stuck.goaways == [0]
        await host.until_ended()


async def test_an_http1_client_that_reads_nothing_is_dropped() -> None:
    async with hosted(grace_s=0.01) as host:
        host.listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        client = H1Client(*await connected(host, receive=4096))
        body = json.dumps(streamed(CHAT)).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        await client.send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await host.engine.until(lambda: bool(host.engine.requests))
        key = host.engine.requests[0].key
        host.engine.info.context_length = 2**30
        for _ in range(40):
            host.engine.say(key, b"x" * 6_000)
            await anyio.lowlevel.checkpoint()
        await draining(host)
        await host.until_ended()
        rest = b""
        with suppress(OSError):
            rest = await client.rest()
        assert not rest.endswith(b"0\r\n\r\n")
        client.writer.close()


async def test_a_slow_reader_gets_everything(tls: Path | None) -> None:
    """More than its system takes at once, and it gives back windows as it reads."""
    async with (
        hosted(grace_s=LONG_S, tls=tls) as host,
        raw_h2(host, window=ENDLESS, receive=4096) as client,
    ):
        stream = await post(client, CHAT, streamed(CHAT))
        await client.until_begun(stream)
        host.engine.info.context_length = 2**30
        key = host.engine.requests[0].key
        for _ in range(800):
            host.engine.say(key, b"some words ")
            await anyio.lowlevel.checkpoint()
        finish(host)
        host.ending.ask()
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(GUARD_S):
            while data := await client.reader.read(1024):
                for event in client.h2.receive_data(data):
                    client.seen.append(event)
                    if isinstance(event, h2_events.DataReceived):
                        with suppress(ProtocolError):
                            client.h2.acknowledge_received_data(
                                event.flow_controlled_length, event.stream_id
                            )
                client.h2.ping(b"still on")
                await client.flush()
        assert end_is_before_goaway(client, stream)
        assert_whole(client.body(stream))
        assert client.body(stream).count(b"some words ") == 800
        await client.close()
        await host.until_ended()


async def test_connections_that_only_wait_do_not_hold_the_end(tls: Path | None) -> None:
    """Fresh ones, and ones that have had an answer; their clients do not read."""
    async with (
        hosted(grace_s=LONG_S, tls=tls) as host,
        raw_h2(host) as fresh,
        raw_h2(host) as used,
        host.client() as pooled,
    ):
        assert await used.get("/live") == b'{"status":"ok"}'
        await pooled.get("/live")
        await fresh.read()
        host.ending.ask()
        await host.until_ended()


HEAD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def halves() -> Iterator[Any]:
    body = json.dumps(streamed(CHAT))
    whole = f"{HEAD}content-length: {len(body)}\r\n\r\n{body}".encode()
    for name, cut in (("line", 7), ("head", len(HEAD) - 9), ("body", len(whole) - 5)):
        yield pytest.param(whole[:cut], whole[cut:], id=name)


@pytest.mark.parametrize(("before", "after"), list(halves()))
async def test_a_request_that_is_half_sent_is_refused(before: bytes, after: bytes) -> None:
    async with (
        hosted(grace_s=LONG_S) as host,
        host.client() as other,
        other.stream("POST", CHAT, json=streamed(CHAT)) as response,
        H1Client.open(host.listener) as client,
    ):
        await client.send(before)
        await anyio.wait_all_tasks_blocked()
        await draining(host)
        with suppress(OSError):  # a refusal may have come before the rest of a body
            await client.send(after)
        head = await client.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"connection: close" in head.lower()
        assert b"shutting_down" in await client.rest()
        finish(host)
        assert_whole(await response.aread())
        await host.until_ended()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_does_not_come_is_not_waited_for(protocol: str) -> None:
    async with hosted(grace_s=LONG_S) as host:
        if protocol == "HTTP/2":
            async with raw_h2(host) as client:
                stream = client.queue(CHAT, "POST", end=False, headers=JSON.items())
                client.h2.send_data(stream, b"{")
                await client.flush()
                await anyio.wait_all_tasks_blocked()
                host.ending.ask()
                await client.until_ended(stream)
                assert client.status(stream) == "503"
                assert b"shutting_down" in client.body(stream)
                await host.until_ended()
        else:
            async with H1Client.open(host.listener) as plain:
                await plain.send(f"{HEAD}content-length: 999\r\n\r\n{{".encode())
                await anyio.wait_all_tasks_blocked()
                host.ending.ask()
                assert (await plain.until(b"\r\n")).startswith(b"HTTP/1.1 503 ")
                assert b"shutting_down" in await plain.rest()
                await host.until_ended()
