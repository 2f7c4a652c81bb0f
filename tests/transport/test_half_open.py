"""Sockets that are half closed, upgrades that bring more than themselves, and headers of a
connection: what belongs to one message only never harms the next."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from h2.events import DataReceived, ResponseReceived
from hypercorn.typing import (
    ASGIReceiveCallable,
    ASGISendCallable,
    Scope,
    WebsocketAcceptEvent,
    WebsocketCloseEvent,
)

from transport.hosting import H1Client, H2Client, serving
from transport.scene import HEAD_END, scene

GET = b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n"
SILENT = b"GET /silent HTTP/1.1\r\nhost: x\r\n\r\n"
HALF = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"
CHUNK = b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf"
UPGRADE = (
    b"GET /socket HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /hi HT", id="half a header block"),
        pytest.param(HALF, id="half a body"),
        pytest.param(CHUNK, id="half a chunk"),
        pytest.param(SILENT, id="a request"),
        pytest.param(GET, id="a request that is answered at once"),
        pytest.param(SILENT + GET, id="two requests"),
        pytest.param(SILENT + b"GET /h", id="a request and a half"),
        pytest.param(b"PRI * HTTP/2.0\r\n", id="half a preface"),
        pytest.param(UPGRADE, id="an upgrade"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_client_that_ends_its_side(
    caplog: pytest.LogCaptureFixture, sent: bytes, at_once: bool
) -> None:
    """The connection ends, with what was asked for or without, and no handler is left."""
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(sent)
        if not at_once:
            for _ in range(20):
                await asyncio.sleep(0)
        client.writer.write_eof()
        await client.rest()
        await it.tracker.until(lambda tracker: tracker.live == 0)


async def test_an_http2_client_that_ends_its_side(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        streams = [client.queue("/silent"), client.queue("/echo", "POST", end=False)]
        await client.flush()
        await client.read_until(lambda: bool(client.of(DataReceived, streams[0])))
        await it.tracker.until(lambda tracker: tracker.live == 2)
        client.writer.write_eof()
        await client.read_to_end()
        await it.tracker.until(lambda tracker: tracker.live == 0)


@pytest.mark.parametrize("extra", [b"\x88", b"x" * 1000, GET])
async def test_an_upgrade_with_more_behind_it(
    caplog: pytest.LogCaptureFixture, extra: bytes
) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(UPGRADE + extra)
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.count(b"HTTP/1.1") == 1
        assert b'"code":"invalid_http"' in answer.partition(HEAD_END)[2]


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("path", [b"/socket", b"/nowhere"])
async def test_a_byte_that_comes_while_a_handshake_is_answered(
    caplog: pytest.LogCaptureFixture, turns: int, path: bytes
) -> None:
    """Before, between and after the pieces of an answer, whoever gives it: there is one."""
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        handshake = UPGRADE.replace(b"/socket", path)
        if not turns:
            handshake += b"X"
        await client.send(handshake)
        for _ in range(turns):
            await asyncio.sleep(0)
        client.writer.write(b"X")
        client.writer.write_eof()
        answer = await client.rest()
        assert answer.count(b"HTTP/1.1 ") <= 1
    assert not caplog.records


async def test_an_application_is_told_of_a_handshake_that_was_refused() -> None:
    told = asyncio.Event()

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "websocket":
            raise NotImplementedError
        while (await receive())["type"] != "websocket.disconnect":
            pass
        refusal: WebsocketCloseEvent = {"type": "websocket.close", "code": 1000, "reason": None}
        await send(refusal)
        told.set()

    async with serving(asgi) as listener, H1Client.open(listener) as client:
        await client.send(UPGRADE + b"X")
        assert (await client.rest()).count(b"HTTP/1.1 400 ") == 1
        with anyio.fail_after(9):
            await told.wait()


async def test_an_upgrade_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(UPGRADE)
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 101 ")
        await client.until(b"hello")


async def test_headers_of_a_connection_are_no_part_of_an_http2_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scene(caplog) as it, H2Client.open(it.listener) as client:
        stream = await client.request("/hops")
        await client.until_ended(stream)
        assert client.body(stream) == b"hops"
        (answer,) = client.of(ResponseReceived, stream)
        names = {bytes(name) for name, _ in answer.headers}
        assert b"x-kept" in names
        assert not names & {b"connection", b"keep-alive"}


async def test_on_http1_they_stay(caplog: pytest.LogCaptureFixture) -> None:
    async with scene(caplog) as it, H1Client.open(it.listener) as client:
        await client.send(b"GET /hops HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"keep-alive: timeout=5" in await client.until(b"hops")


@pytest.mark.parametrize("turns", range(8))
async def test_a_handshake_that_is_refused_may_still_be_accepted(turns: int) -> None:
    """By an application that does not know of it yet: that goes nowhere."""
    accepted = asyncio.Event()

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "websocket":
            raise NotImplementedError
        for _ in range(turns):
            await asyncio.sleep(0)
        accept: WebsocketAcceptEvent = {
            "type": "websocket.accept",
            "subprotocol": None,
            "headers": [],
        }
        await send(accept)
        accepted.set()

    async with serving(asgi) as listener, H1Client.open(listener) as client:
        await client.send(UPGRADE + b"\x88")
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 400 ")
        with anyio.fail_after(9):
            await accepted.wait()
