"""How a stream looks on the wire: its head, its last bytes, and what is no cancel any more."""

from __future__ import annotations

import json
import struct

import pytest
from h2.errors import ErrorCodes
from h2.events import ResponseReceived

from antiphon.engines.port import Finish
from api.hosted import BODIES, CHAT, COMPLETIONS, JSON, RESPONSES, hosted
from transport.hosting import H1Client, H2Client

PATHS = [CHAT, COMPLETIONS, RESPONSES]
DONE = b"data: [DONE]\n\n"
HEAD = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "x-request-id": "r1",
}
ABSENT = ("content-length", "content-encoding")


def body_of(path: str) -> bytes:
    return json.dumps({**BODIES[path], "stream": True}).encode()


@pytest.mark.parametrize("path", PATHS)
async def test_over_http_1_the_last_chunk_is_always_sent(path: str) -> None:
    body = body_of(path)
    start = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        f"x-request-id: r1\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    async with hosted() as host, H1Client.open(host.listener) as client:
        await client.send(start.encode() + body)
        status, *lines = (await client.until(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {line.split(": ")[0].lower(): line.split(": ", 1)[1] for line in lines}
        assert status == "HTTP/1.1 200 OK"
        assert {name: headers[name] for name in HEAD} == HEAD
        assert not any(name in headers for name in ABSENT)
        assert headers["transfer-encoding"] == "chunked"
        host.engine.end(host.engine.requests[0].key, Finish.STOP)
        end = await client.until(b"0\r\n\r\n")
        assert end.endswith(DONE + b"\r\n0\r\n\r\n")
        # The connection is there for the next request.
        await client.send(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.until(b"\r\n")) == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("path", PATHS)
async def test_over_http_2_the_end_follows_the_last_frame_and_a_late_reset_cancels_nothing(
    path: str,
) -> None:
    async with hosted() as host, H2Client.open(host.listener) as client:
        headers = [*JSON.items(), ("x-request-id", "r1")]
        stream = client.queue(path, "POST", end=False, headers=headers)
        client.h2.send_data(stream, body_of(path), end_stream=True)
        await client.flush()
        await client.read_until(lambda: client.status(stream) is not None)
        ((run, _),) = host.service.fanout._open.values()
        host.engine.end(host.engine.requests[0].key, Finish.STOP)
        await client.until_ended(stream)
        (response,) = client.of(ResponseReceived, stream)
        told = {bytes(name).decode(): bytes(value).decode() for name, value in response.headers}
        assert {name: told[name] for name in HEAD} == HEAD
        assert not any(name in told for name in (*ABSENT, "connection", "transfer-encoding"))
        assert client.body(stream).endswith(DONE)
        assert client.reset(stream) is None
        # By hand: the library will not reset a stream that has ended, a client may.
        client.writer.write(struct.pack(">BHBBLL", 0, 4, 3, 0, stream, ErrorCodes.CANCEL))
        assert await client.get("/live") == b'{"status":"ok"}'
    assert host.engine.aborted == []
    assert run.logs[0][-1].kind == "completed"


@pytest.mark.parametrize("path", PATHS)
async def test_the_head_does_not_wait_for_a_token(path: str) -> None:
    async with hosted() as host, host.client() as client:
        body = {**BODIES[path], "stream": True}
        async with client.stream("POST", path, json=body) as response:
            assert response.status_code == 200
            assert host.engine.requests
        await host.engine.until(lambda: len(host.engine.aborted) == 1)
