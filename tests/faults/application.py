"""The application that the faults are tried on, in a process of its own, behind either host.

::

    python tests/faults/application.py HOST SETTINGS

HOST is ``ours`` or ``stock`` (Hypercorn as it comes), SETTINGS the fields of ``Settings`` as JSON.
The port is printed as the only line.

``/s/MODE`` streams by ordinary sends of Quart, ``/sink/MODE`` by the frame sink where the host has
one. Modes: ``paced`` (a frame every 10 ms), ``tail`` (the same with the pause behind each frame),
``silent`` (a frame and no more), ``flood`` (1 KiB frames as fast as they are taken), ``boom``
(three frames and an exception). ``?n=`` is the number of frames, ``?type=`` another content type.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import attrs
from hypercorn.asyncio import serve as serve_stock
from hypercorn.config import Config
from quart import Quart, Response, request, websocket

EVENT_STREAM = "text/event-stream"
FLOOD_FRAME = 1024
"""Bytes of a frame of ``flood``."""
ENDLESS = 10**9


@attrs.frozen(kw_only=True)
class Settings:
    """What a test asks of its server. ``limits`` are ours by name; Hypercorn gets those it has."""

    limits: dict[str, Any] = attrs.field(factory=dict)
    grace_s: float = 20.0
    response_timeout_s: float | None = 60.0
    """Of Quart, and by default its own default."""
    body_timeout_s: float = 60.0
    """Of Quart for a whole body; what Hypercorn has none for."""
    cert: tuple[str, str] | None = None


@attrs.define
class Tally:
    """What the handlers of a server have done."""

    entered: int = 0
    left: int = 0
    produced: int = 0
    """Bytes of frames."""

    @contextmanager
    def handler(self) -> Any:
        self.entered += 1
        try:
            yield
        finally:
            self.left += 1


def frame_of(mode: str, number: int) -> bytes:
    """The frame with that number, from 0 on, of every stream of that mode."""
    if mode == "flood":
        return f"data: {number:<{FLOOD_FRAME - 8}}\n\n".encode()
    return f"data: {number}\n\n".encode()


async def frames(mode: str, count: int) -> AsyncIterator[bytes]:
    """The frames of a stream in their time."""
    for number in range(count):
        if mode == "boom" and number == 3:
            raise ValueError("boom")
        if mode == "silent" and number == 1:
            await asyncio.Event().wait()
        if mode != "tail":
            await asyncio.sleep(0 if mode == "flood" else 0.01)
        yield frame_of(mode, number)
        if mode == "tail":
            await asyncio.sleep(0.01)


def make_quart(tally: Tally, settings: Settings) -> Quart:
    """The routes of Quart."""
    app = Quart("faults", static_folder=None)
    app.config["RESPONSE_TIMEOUT"] = settings.response_timeout_s
    app.config["BODY_TIMEOUT"] = settings.body_timeout_s
    app.config["MAX_CONTENT_LENGTH"] = None

    async def stream(mode: str, count: int) -> AsyncIterator[bytes]:
        with tally.handler():
            async for frame in frames(mode, count):
                tally.produced += len(frame)
                yield frame

    @app.route("/s/<mode>", methods=["GET", "POST"])
    async def streamed(mode: str) -> Response:
        count = int(request.args.get("n", ENDLESS))
        kind = request.args.get("type", EVENT_STREAM)
        return Response(stream(mode, count), content_type=kind)

    @app.get("/tally")
    async def show() -> dict[str, Any]:
        return {**attrs.asdict(tally), "tasks": len(asyncio.all_tasks())}

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.get("/hop")
    async def hop() -> Response:
        headers = {"connection": "keep-alive", "keep-alive": "timeout=5", "x-kept": "yes"}
        return Response("hop", headers=headers)

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 400

    @app.post("/length")
    async def length() -> str:
        with tally.handler():
            return str(len(await request.get_data()))

    @app.websocket("/ws")
    async def echo() -> None:
        while True:
            await websocket.send(await websocket.receive())

    return app


class Application:
    """The routes of Quart, and beside them those that speak to the sink."""

    def __init__(self, tally: Tally, quart: Quart) -> None:
        self._tally = tally
        self._quart = quart

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/sink/"):
            query = parse_qs(scope["query_string"].decode())
            count = int(query.get("n", [ENDLESS])[0])
            await self._sink(scope, scope["path"].removeprefix("/sink/"), count)
        else:
            await self._quart(scope, receive, send)

    async def _sink(self, scope: Any, mode: str, count: int) -> None:
        sink = scope["extensions"]["antiphon.frames"]
        closed, ready = asyncio.Event(), asyncio.Event()
        with self._tally.handler():
            sink.on_closed(closed.set)
            sink.on_ready(ready.set)
            await sink.start(200, [(b"content-type", EVENT_STREAM.encode())])
            playing = asyncio.ensure_future(self._play(sink, mode, count, ready))
            leaving = asyncio.ensure_future(closed.wait())
            try:
                await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (playing, leaving):
                    task.cancel()
                await asyncio.gather(playing, leaving, return_exceptions=True)

    async def _play(self, sink: Any, mode: str, count: int, ready: asyncio.Event) -> None:
        try:
            async for frame in frames(mode, count):
                while not sink.offer(frame):
                    await ready.wait()
                    ready.clear()
                self._tally.produced += len(frame)
        except ValueError:
            sink.reset()
            raise
        sink.end()
        await sink.finished()


def say(port: int) -> None:
    """Tell whoever has started this where it listens."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


async def serve_ours(app: Application, settings: Settings) -> None:
    """By our own worker."""
    from antiphon.transport.ending import Ending
    from antiphon.transport.limits import Limits
    from antiphon.transport.listener import bind
    from antiphon.transport.settings import HostConfig
    from antiphon.transport.worker import serve_on

    cert = [Path(each) for each in settings.cert or ()]
    ending = Ending()
    config = HostConfig(lambda: "named-by-the-host", limits=Limits(**settings.limits))
    with bind("127.0.0.1", 0, *cert) as listener, ending.on_signals():
        say(listener.port)
        await serve_on(app, [listener], ending, config=config, grace_s=settings.grace_s)


async def serve_as_it_comes(app: Application, settings: Settings) -> None:
    """By Hypercorn, with what it has of the limits."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    listening.set_inheritable(True)
    config = Config()
    config.bind = [f"fd://{listening.fileno()}"]
    config.accesslog, config.errorlog = None, "-"
    config.graceful_timeout = settings.grace_s
    if settings.cert is not None:
        config.certfile, config.keyfile = settings.cert
    # Those that it has.
    theirs = {
        "h2_max_concurrent_streams": "h2_max_concurrent_streams",
        "idle_timeout": "keep_alive_timeout",
        "max_header_bytes": "h11_max_incomplete_size",
    }
    for name, value in settings.limits.items():
        if name in theirs:
            setattr(config, theirs[name], value)
    say(listening.getsockname()[1])
    await serve_stock(app, config)


def main(host: str, settings: Settings) -> None:
    """Serve until a signal ends it."""
    tally = Tally()
    quart = make_quart(tally, settings)
    if host == "ours":
        from antiphon.transport.quart_host import AntiphonHTTPConnection

        quart.asgi_http_class = AntiphonHTTPConnection
        asyncio.run(serve_ours(Application(tally, quart), settings))
    else:
        asyncio.run(serve_as_it_comes(Application(tally, quart), settings))


if __name__ == "__main__":
    main(sys.argv[1], Settings(**json.loads(sys.argv[2])))
