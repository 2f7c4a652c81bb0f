"""One client at fault, and a neighbour who must not notice.

The neighbour has an answer that is open all the time. At the end it still comes, new clients are
served, no handler of the client at fault is left, and the log has at most one line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
from quart import Quart, Response, request, websocket

from antiphon.transport.counted import Counted
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.listener import Listener, bind
from antiphon.transport.settings import HostConfig
from transport.hosting import H1Client, Tracker, new_request_id, quart_app, serving_on

HEAD_END = b"\r\n\r\n"


@attrs.define
class Scene:
    """A server with a neighbour on it."""

    listener: Listener
    counted: Counted
    tracker: Tracker
    """Handlers of /silent and /waiting, and of bodies that are read."""

    def numbers(self) -> dict[str, int]:
        """What was counted, without what is 0."""
        numbers = attrs.asdict(self.counted)
        return {name: n for name, n in numbers.items() if n and name != "connections"}


@asynccontextmanager
async def scene(
    caplog: pytest.LogCaptureFixture, limits: Limits = DEFAULT_LIMITS
) -> AsyncIterator[Scene]:
    """See above; for the length of the block."""
    tracker, go_on, counted = Tracker(), asyncio.Event(), Counted()
    app = _app(tracker, go_on)
    config = HostConfig(new_request_id, limits, counted)
    listener = bind("127.0.0.1", 0)
    with caplog.at_level(logging.DEBUG, logger="antiphon.transport"):
        async with serving_on(app, [listener], config), H1Client.open(listener) as neighbour:
            await neighbour.send(b"GET /neighbour HTTP/1.1\r\nhost: x\r\n\r\n")
            await neighbour.until(b"first")
            yield Scene(listener, counted, tracker)
            await tracker.until(lambda it: it.live == 0)
            go_on.set()
            await neighbour.until(b"second")
            async with H1Client.open(listener) as another:
                await another.send(b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n")
                assert await another.until(b"hi")
    lines = [each.getMessage() for each in caplog.records]
    assert len(lines) <= 1, lines


def _app(tracker: Tracker, go_on: asyncio.Event) -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.get("/neighbour")
    async def neighbour() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            await go_on.wait()
            yield b"second"

        return Response(body())

    @app.get("/silent")
    async def silent() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                yield b"first"
                await anyio.sleep_forever()

        return Response(body())

    @app.get("/flood")
    async def flood() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                while True:
                    yield bytes(1024)

        return Response(body())

    @app.post("/echo")
    async def echo() -> bytes:
        with tracker:
            data: bytes = await request.body
            return data

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 400

    @app.post("/begun")
    async def begun() -> Response:
        whole = request.body

        async def body() -> AsyncIterator[bytes]:
            with tracker:
                yield b"first"
                yield await whole

        return Response(body())

    @app.get("/hops")
    async def hops() -> Response:
        headers = {"Connection": "keep-alive", "keep-alive": "timeout=5", "x-kept": "yes"}
        return Response("hops", headers=headers)

    @app.websocket("/socket")
    async def socket() -> None:
        await websocket.send("hello")

    return app
