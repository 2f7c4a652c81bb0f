"""How the frames of a stream leave: whole, one after another, and with a marked end."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from h2.events import DataReceived, StreamEnded

from antiphon.engines.port import Finish
from api.hosted import BODIES, JSON, Hosted, hosted
from transport.hosting import H1Client, H2Client

DONE = b"data: [DONE]\n\n"
PATHS = list(BODIES)


def body(path: str) -> bytes:
    return json.dumps({**BODIES[path], "stream": True}).encode()


def speak(host: Hosted) -> None:
    (request,) = host.engine.requests
    for word in (b"one ", b"two", b" \xe4\xbd\xa0"):
        host.engine.say(request.key, word)
    host.engine.end(request.key, Finish.STOP)


def pieces(chunked: bytes) -> Iterator[bytes]:
    """The chunks of a chunked body, the last and empty one too."""
    while chunked:
        size, _, rest = chunked.partition(b"\r\n")
        length = int(size, 16)
        yield rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        chunked = rest[length + 2 :]


@pytest.mark.wire("F3", "F5", "F11", "K17")
@pytest.mark.parametrize("path", PATHS)
async def test_http_1(path: str) -> None:
    """Every chunk holds whole frames, and the empty one is there."""
    async with hosted() as host, H1Client.open(host.listener) as client:
        data = body(path)
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        await client.send(head.encode() + data)
        assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        speak(host)
        *frames, last = pieces(await client.rest())
    assert last == b""
    assert all(frame.endswith(b"\n\n") for frame in frames)
    stream = b"".join(frames)
    assert stream.endswith(DONE)
    assert b"\r" not in stream


@pytest.mark.wire("F3", "F5", "F11", "K17")
@pytest.mark.parametrize("path", PATHS)
async def test_http_2(path: str) -> None:
    """Every DATA frame holds whole frames; the end of the stream is that of the last one."""
    async with hosted() as host, H2Client.open(host.listener) as client:
        stream = client.queue(path, "POST", end=False, headers=JSON.items())
        client.h2.send_data(stream, body(path), end_stream=True)
        await client.flush()
        await client.until_begun(stream)
        speak(host)
        await client.until_ended(stream)
        frames = [event.data for event in client.of(DataReceived, stream) if event.data]
        mine = [event for event in client.seen if getattr(event, "stream_id", None) == stream]
    assert all(frame.endswith(b"\n\n") for frame in frames)
    assert frames[-1].endswith(DONE)
    assert isinstance(mine[-1], StreamEnded)


@pytest.mark.wire("F10")
@pytest.mark.parametrize("path", PATHS)
async def test_the_head_comes_before_the_first_token(path: str) -> None:
    async with (
        hosted() as host,
        host.client() as client,
        client.stream("POST", path, content=body(path), headers=JSON) as response,
    ):
        assert response.status_code == 200
        speak(host)
        assert (await response.aread()).endswith(DONE)


@pytest.mark.wire("K19", "F3")
@pytest.mark.parametrize("path", PATHS)
async def test_an_engine_that_dies_leaves_no_stream_open(path: str) -> None:
    """There is a terminal event, and the end; only an answer that was cancelled has none."""
    async with (
        hosted() as host,
        host.client() as client,
        client.stream("POST", path, content=body(path), headers=JSON) as response,
    ):
        host.engine.say(host.engine.requests[0].key, b"one")
        host.engine.die()
        data = await response.aread()
    assert data.endswith(DONE)
    assert b"server_error" in data
