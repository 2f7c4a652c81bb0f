"""The same routes on hosts that know no frame sink: other ASGI servers, and Quart's test client.

Their answers come by plain ASGI messages, and are the same to the byte; a reader that is slow has
its bound there too, and one that leaves ends its run.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import anyio
import attrs
import httpx
import hypercorn.asyncio
import pytest
import uvicorn
from hypercorn.config import Config as StockConfig
from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope

import antiphon.api.answering
from antiphon.api.service import Service
from antiphon.app import make_app, make_service, running
from antiphon.engines.pace import Pace
from antiphon.engines.port import Finish
from antiphon.engines.recording import load_recordings
from antiphon.engines.replay import ReplayEngine
from antiphon.loading import recorded_models
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.run import Run
from antiphon.runs.subscribers import Subscription
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from api.conftest import CREATED, FIXTURES, Bench
from api.hosted import BODIES, CHAT, JSON, PROMPT_TOKENS, RESPONSES, SteeredEngine
from golden.test_served import NAMES, PATHS, PLAIN, fixed, request, served
from transport.hosting import GUARD_S, H1Client, H2Client, new_request_id, serving_on
from transport.kinds import parsed

KIB = 1024
SMALL = 8 * KIB
HOSTS = ["ours", "hypercorn", "uvicorn"]
CASES = [
    *[(endpoint, name) for name in NAMES for endpoint in ("chat", "responses")],
    *[("completions", name) for name in PLAIN],
]


class Uvicorn(uvicorn.Server):
    """Without a hand in the signals of the tests."""

    def capture_signals(self) -> Any:
        return nullcontext()


@asynccontextmanager
async def on(host: str, app: ASGIFramework) -> AsyncIterator[int]:
    """``app`` on a host of that name; its port. Connections hold little by themselves."""
    if host == "ours":
        listener = bind("127.0.0.1", 0)
        listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        async with serving_on(app, [listener], HostConfig(new_request_id)):
            yield listener.port
        return
    sock = socket.create_server(("127.0.0.1", 0))  # The host closes it.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    port: int = sock.getsockname()[1]
    async with anyio.create_task_group() as tasks:
        if host == "hypercorn":
            ending, config = asyncio.Event(), StockConfig()
            config.bind = [f"fd://{sock.detach()}"]
            config.graceful_timeout = 0.01
            config.errorlog = None
            serve = partial(hypercorn.asyncio.serve, app, config, shutdown_trigger=ending.wait)
            tasks.start_soon(serve)
            yield port
            ending.set()
        else:
            server = Uvicorn(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=0))
            tasks.start_soon(server.serve, [sock])
            yield port
            server.should_exit = True


def post(path: str, body: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes]:
    """The headers and the body of a request."""
    data = json.dumps(body).encode()
    return [*JSON.items(), ("content-length", str(len(data))), ("x-request-id", "r1")], data


async def over_h1(port: int, path: str, body: dict[str, Any]) -> bytes:
    headers, data = post(path, body)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = H1Client(reader, writer)
    await client.send(head_of(path, headers) + data)
    answered = parsed(await client.rest(), b"1.1")
    writer.close()
    await writer.wait_closed()
    assert (answered.status, answered.whole) == (200, True)
    return answered.body


def head_of(path: str, headers: list[tuple[str, str]]) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", "connection: close"]
    return "\r\n".join([*lines, *map(": ".join, headers), "", ""]).encode()


async def over_h2(port: int, path: str, body: dict[str, Any]) -> bytes:
    headers, data = post(path, body)
    async with H2Client.connect(port) as client:
        stream = client.queue(path, "POST", end=False, headers=headers)
        client.h2.send_data(stream, data, end_stream=True)
        await client.flush()
        await client.until_ended(stream)
        assert client.status(stream) == "200"
        return client.body(stream)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    recordings = load_recordings(FIXTURES)
    engine = ReplayEngine(recordings, pace=Pace.FULL)
    models = recorded_models(recordings, await engine.start(), CREATED)
    service = make_service(engine, models)
    async with running(service):
        yield Bench(service, make_app(service).test_client())


@pytest.mark.wire("G1", "S10")
@pytest.mark.parametrize("host", HOSTS)
async def test_every_recorded_stream_is_the_same_on_every_host(bench: Bench, host: str) -> None:
    """As the test client has it, which the goldens fix: all fixtures, all endpoints."""
    due = {case: await served(bench, *case) for case in CASES}
    async with on(host, make_app(bench.service)) as port:
        for endpoint, name in CASES:
            body = request(endpoint, name)
            answer = await over_h1(port, PATHS[endpoint], body)
            assert fixed(answer.decode(), name) == due[endpoint, name]
            if host != "uvicorn":
                answer = await over_h2(port, PATHS[endpoint], body)
                assert fixed(answer.decode(), name) == due[endpoint, name]


class Watched(Subscription):
    """Keeps the most that it has held while its run went on. The last words of a response have all
    of its text in them."""

    most = 0

    def take(self, frames: list[bytes]) -> None:
        super().take(frames)
        if not self._run.ended:
            self.most = max(self.most, self._size)


@attrs.define
class Steered:
    """A server of that host over an engine that the test steers."""

    port: int
    engine: SteeredEngine
    service: Service
    readers: list[Watched]

    async def flood(self, steps: int) -> None:
        """Steps for the first request, each with a turn of the loop."""
        for _ in range(steps):
            self.engine.say(self.engine.requests[0].key, TEXT)
            await anyio.lowlevel.checkpoint()


TEXT = b"x" * 400
FRAME = len(TEXT) + 400
BACKLOG = 30 * KIB


@asynccontextmanager
async def steered(
    host: str, monkeypatch: pytest.MonkeyPatch, wrapped: Callable[[ASGIFramework], ASGIFramework]
) -> AsyncIterator[Steered]:
    engine, readers = SteeredEngine(), []

    def subscription(run: Run, **how: Any) -> Watched:
        readers.append(reader := Watched(run, backlog=BACKLOG, **how))
        return reader

    monkeypatch.setattr(antiphon.api.answering, "Subscription", subscription)
    prompter = ReplayPrompter(PROMPT_TOKENS, "bytes")
    model = ServedModel(id="m", created=0, prompter=prompter, info=await engine.start())
    service = make_service(engine, [model])
    async with running(service), on(host, wrapped(make_app(service))) as port:
        yield Steered(port, engine, service, readers)


def as_it_is(app: ASGIFramework) -> ASGIFramework:
    return app


@asynccontextmanager
async def asked(port: int, path: str) -> AsyncIterator[H1Client]:
    """A client that has asked for a stream, and reads little by itself."""
    headers, data = post(path, {**BODIES[path], "stream": True})
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
    sock.connect(("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=16 * KIB)
    client = H1Client(reader, writer)
    await client.send(head_of(path, headers) + data)
    try:
        yield client
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("host", HOSTS)
async def test_a_reader_that_is_too_slow_has_a_bound(
    host: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then its run ends, and it can read all that was said, and why there is no more."""
    async with (
        steered(host, monkeypatch, as_it_is) as it,
        asked(it.port, path) as client,
    ):
        await it.engine.until(lambda: bool(it.engine.requests))
        head = await client.until(b"\r\n\r\n")
        with anyio.fail_after(GUARD_S):
            while not it.engine.aborted:
                await it.flood(50)
        assert it.engine.aborted == [it.engine.requests[0].key]
        (reader,) = it.readers
        assert reader.most <= BACKLOG + FRAME
        answered = parsed(head + await client.rest(), b"1.1")
        answer = answered.body
        assert answered.whole
        assert answer.count(TEXT) >= BACKLOG // FRAME
        assert b"read too slowly" in answer
        assert it.service.fanout.running == 0
        last = b"event: response.failed" if path == RESPONSES else b"read too slowly"
        assert answer.count(last) == 1
        assert b"event: response.completed" not in answer
        assert answer.count(b"data: [DONE]") == 1
        assert answer.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("host", HOSTS)
async def test_a_client_that_leaves_ends_its_run(
    host: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with steered(host, monkeypatch, as_it_is) as it:
        async with asked(it.port, path) as client:
            await it.engine.until(lambda: bool(it.engine.requests))
            (request,) = it.engine.requests
            it.engine.say(request.key, TEXT)
            await client.until(TEXT)
            assert it.engine.aborted == []
        await it.engine.until(lambda: it.engine.aborted == [request.key])
        assert it.service.fanout.running == 0


@pytest.mark.parametrize("host", ["ours", "hypercorn"])
async def test_so_does_one_that_resets_its_stream(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, data = post(CHAT, {**BODIES[CHAT], "stream": True})
    async with (
        steered(host, monkeypatch, as_it_is) as it,
        H2Client.connect(it.port) as client,
    ):
        stream = client.queue(CHAT, "POST", end=False, headers=headers)
        client.h2.send_data(stream, data, end_stream=True)
        await client.flush()
        await it.engine.until(lambda: bool(it.engine.requests))
        (request,) = it.engine.requests
        it.engine.say(request.key, TEXT)
        await client.read_until(lambda: TEXT in client.body(stream))
        client.h2.reset_stream(stream)
        await client.flush()
        await it.engine.until(lambda: it.engine.aborted == [request.key])


@pytest.mark.parametrize("host", ["hypercorn", "uvicorn"])
async def test_what_is_ready_goes_in_one_message(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one message is on its way, what comes is gathered for the next."""
    gate, held, messages = anyio.Event(), anyio.Event(), list[bytes]()

    def wrapped(app: ASGIFramework) -> ASGIFramework:
        async def call(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            async def slow(message: Any) -> None:
                if message["type"] == "http.response.body" and message.get("body"):
                    messages.append(message["body"])
                    if TEXT in message["body"]:
                        held.set()
                        await gate.wait()
                await send(message)

            await app(scope, receive, slow)

        return call

    async with (
        steered(host, monkeypatch, wrapped) as it,
        asked(it.port, CHAT) as client,
    ):
        await it.engine.until(lambda: bool(it.engine.requests))
        (request,) = it.engine.requests
        it.engine.say(request.key, TEXT)
        with anyio.fail_after(GUARD_S):
            await held.wait()
        before = len(messages)
        for word in (b"one", b"two", b"three"):
            it.engine.say(request.key, word)
        it.engine.end(request.key, Finish.STOP)
        with anyio.fail_after(GUARD_S):
            while it.service.fanout.running:
                await anyio.lowlevel.checkpoint()
        gate.set()
        answered = parsed(await client.rest(), b"1.1")
        (rest,) = messages[before:]
        assert rest.count(b"\n\n") == 5
        assert answered.body == b"".join(messages)


@pytest.mark.parametrize("host", ["ours", "uvicorn"])
async def test_a_target_is_part_of_what_may_be_too_long(bench: Bench, host: str) -> None:
    async with on(host, make_app(bench.service)) as port, httpx.AsyncClient() as client:
        for query, status in ((100, 200), (20_000, 431)):
            answer = await client.get(
                f"http://127.0.0.1:{port}/live?{'q' * query}", headers={"x-long": "x" * 12_900}
            )
            assert answer.status_code == status
