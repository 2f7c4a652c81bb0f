"""What a client sends ahead of its answers: it is bounded, and hides no client that leaves."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anyio
import h11
import pytest
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Quart

from antiphon.transport.connection import PIECE
from antiphon.transport.inbox import Inbox
from antiphon.transport.settings import READ_AHEAD
from antiphon.transport.sink import FRAMES, FrameSink
from transport.hosting import GUARD_S, H1Client, Tracker, quart_app, serving

HEAD_END = b"\r\n\r\n"
SOON = 0.05
PADDED = b"GET /hi HTTP/1.1\r\nhost: x\r\nx-long: " + 900 * b"x" + HEAD_END
NEXT = b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n"
MORE = (4 * READ_AHEAD // len(PADDED)) * PADDED
"""Many times what is read ahead."""


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.transport.http1.AHEAD_S", SOON)
    monkeypatch.setattr("antiphon.transport.inbox.ANSWERING_S", SOON)
    monkeypatch.setattr("antiphon.transport.inbox.UNTAKEN_S", SOON)


def sink_of(scope: Mapping[str, Any]) -> FrameSink:
    sink: FrameSink = scope["extensions"][FRAMES]
    return sink


class Kinds:
    """An application whose answers do not end, each in another way."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.go_on = asyncio.Event()

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        with self.tracker:
            await self._answer(scope, receive, send)

    async def _answer(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        assert scope["type"] == "http"
        match scope["path"]:
            case "/frames":
                sink = sink_of(scope)
                closed = asyncio.Event()
                sink.on_closed(closed.set)
                await sink.start(200, [])
                sink.offer(b"first")
                await closed.wait()
            case "/ends":
                await self.go_on.wait()
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"done", "more_body": False})
            case "/silent":
                while (await receive())["type"] != "http.disconnect":
                    pass
            case "/plain":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"first", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass


@pytest.fixture
def kinds() -> Kinds:
    return Kinds()


def leave(client: H1Client, *, reset: bool) -> None:
    if reset:
        sock: socket.socket = client.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.writer.transport.abort()
    else:
        client.writer.close()


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("path", ["/frames", "/silent", "/plain"])
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("behind", [READ_AHEAD + PIECE, 4 * READ_AHEAD])
async def test_a_client_is_seen_to_leave_behind_all_that_it_sent(
    kinds: Kinds, path: str, reset: bool, behind: int
) -> None:
    async with serving(kinds) as listener, H1Client.open(listener) as client:
        await client.send(b"GET " + path.encode() + b" HTTP/1.1\r\nhost: x\r\n\r\n")
        await kinds.tracker.until(lambda it: it.live == 1)
        await client.send(MORE[:behind])
        leave(client, reset=reset)
        await kinds.tracker.until(lambda it: it.left == it.entered == 1)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("reset", [False, True])
async def test_a_client_is_seen_to_leave_behind_a_body_that_nobody_reads(
    kinds: Kinds, reset: bool
) -> None:
    """By the inbox, of which the application asks nothing: its tasks are cancelled or told."""
    left = asyncio.Event()

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        closed = asyncio.Event()
        sink = sink_of(scope)
        sink.on_closed(closed.set)
        await sink.start(200, [])
        with kinds.tracker:
            await closed.wait()
        left.set()

    async with serving(asgi) as listener, H1Client.open(listener) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 300000\r\n\r\n")
        await kinds.tracker.until(lambda it: it.live == 1)
        await client.send(bytes(299_000))
        leave(client, reset=reset)
        with anyio.fail_after(GUARD_S):
            await left.wait()


@pytest.mark.usefixtures("_impatient")
async def test_a_body_that_was_not_taken_has_no_end() -> None:
    got: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
    begin = asyncio.Event()

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        if scope["path"] == "/hi":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await begin.wait()
        kinds: list[str] = [(await receive())["type"]]
        while kinds[-1] == "http.request":
            kinds.append((await receive())["type"])
        got.set_result(kinds)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late", "more_body": False})

    async with serving(asgi) as listener, H1Client.open(listener) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n")
        await client.send(bytes(9_000_000))  # It is taken off the client all the same.
        begin.set()
        assert await got == ["http.request", "http.disconnect"]
        assert (await client.until(b"late\r\n0" + HEAD_END)).startswith(b"HTTP/1.1 200 ")
        await client.send(NEXT)
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 204 ")


async def test_an_inbox_waits_for_an_application_that_takes_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every piece that is taken buys the next one as much."""
    monkeypatch.setattr("antiphon.transport.inbox.UNTAKEN_S", 4 * SOON)
    inbox = Inbox(1)

    async def fill() -> None:
        for _ in range(8):
            await inbox.put({"type": "http.request", "body": b"x", "more_body": True})

    filling = asyncio.ensure_future(fill())
    for _ in range(8):
        await asyncio.sleep(SOON)
        assert (await inbox.get())["type"] == "http.request"
    await filling


@pytest.mark.usefixtures("_impatient")
async def test_an_answer_that_lasts_is_the_last_one(kinds: Kinds) -> None:
    async with serving(kinds) as listener, H1Client.open(listener) as client:
        await client.send(b"GET /ends HTTP/1.1\r\nhost: x\r\n\r\n")
        await client.send(20 * MORE)  # Also what is far above any buffer.
        kinds.go_on.set()
        answer = await client.rest()
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close\r\n" in answer
        assert b"done" in answer
        assert kinds.tracker.entered == 1


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The most that h11 has held of a connection."""
    seen = [0]
    receive = h11.Connection.receive_data

    def watched(self: h11.Connection, data: bytes) -> None:
        receive(self, data)
        seen[0] = max(seen[0], len(self.trailing_data[0]))

    monkeypatch.setattr(h11.Connection, "receive_data", watched)
    return iter([seen])


def hi() -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        await asyncio.sleep(0)
        return "hi there"

    return app


@pytest.mark.parametrize("request_", [NEXT, PADDED], ids=["small", "large"])
async def test_a_thousand_at_once_are_all_answered_and_little_is_held(
    most: Iterator[list[int]], request_: bytes
) -> None:
    (held,) = most
    async with serving(hi()) as listener, H1Client.open(listener) as client:
        sending = asyncio.ensure_future(client.send(3000 * request_))
        for _ in range(3000):
            await client.until(b"hi there")
        await sending
    assert held[0] <= READ_AHEAD + PIECE
