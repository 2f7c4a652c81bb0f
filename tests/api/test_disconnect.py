"""A client that goes away, over a real socket: its engine request is aborted, whatever it asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import httpx
import pytest

from antiphon.app import make_app, make_service, new_tail, running
from antiphon.engines.pace import Pace
from antiphon.engines.recording import load_recordings
from antiphon.engines.replay import ReplayEngine
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.catalogue import ServedModel
from antiphon.transport.ending import Ending
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on
from api.conftest import FIXTURES
from transport.hosting import H2Client

JSON = "application/json"

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "n": 3},
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": "hi"},
}


class WatchedEngine(ReplayEngine):
    """The replay engine, which says when it is told to abort."""

    def watch(self) -> None:
        self.submitted = anyio.Event()
        self.aborted = anyio.Event()
        self.keys: list[int] = []
        self.requests_handled = 0
        self.one_handled = anyio.Event()

    async def handled(self, _error: BaseException | None) -> None:
        """For the application to call at the end of each request."""
        self.requests_handled += 1
        self.one_handled.set()
        self.one_handled = anyio.Event()

    def submit(self, request: Any) -> None:
        super().submit(request)
        self.submitted.set()

    def abort(self, keys: Sequence[int]) -> None:
        self.keys += keys
        super().abort(keys)
        self.aborted.set()


@pytest.fixture
async def host() -> AsyncIterator[tuple[WatchedEngine, Any, str]]:
    """(engine, service, url) of a server whose model never stops by itself."""
    recordings = {"plain/hold": load_recordings(FIXTURES)["plain/hold"]}
    engine = WatchedEngine(recordings, pace=Pace.FULL)
    engine.watch()
    info = await engine.start()
    model = ServedModel(id="plain/hold", created=0, prompter=ReplayPrompter(3, "opaque"), info=info)
    service = make_service(engine, [model])
    ending = Ending()
    with bind("127.0.0.1", 0) as listener:
        async with running(service), anyio.create_task_group() as tasks:
            app = make_app(service)
            app.teardown_request(engine.handled)

            async def run() -> None:
                config = HostConfig(new_tail)
                await serve_on(app, [listener], ending, config=config, grace_s=0)

            tasks.start_soon(run)
            yield engine, service, listener.url
            ending.ask()


@pytest.mark.wire("P23", "S1")
@pytest.mark.parametrize("path", list(BODIES))
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
async def test_leaving_aborts(
    host: tuple[WatchedEngine, Any, str], protocol: str, stream: bool, path: str
) -> None:
    engine, service, url = host
    http2 = protocol == "HTTP/2"
    body = {"model": "plain/hold", "stream": stream, **BODIES[path]}
    with anyio.fail_after(10):
        async with httpx.AsyncClient(base_url=url, http1=not http2, http2=http2) as client:
            if stream:
                async with client.stream("POST", path, json=body) as response:
                    assert response.http_version == protocol
                    await anext(response.aiter_bytes())
            else:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lambda: client.post(path, json=body))
                    await engine.submitted.wait()
                    tasks.cancel_scope.cancel()
        await engine.aborted.wait()
    assert len(engine.keys) == body.get("n", 1)
    assert service.fanout.running == 0


async def test_one_stream_of_a_connection_is_reset_and_its_neighbour_goes_on(
    host: tuple[WatchedEngine, Any, str],
) -> None:
    engine, service, url = host
    body = json.dumps({"model": "plain/hold", "stream": True, "input": "hi"}).encode()
    with anyio.fail_after(10):
        async with H2Client.connect(int(url.rpartition(":")[2])) as client:
            streams = []
            for _ in range(2):
                stream = client.queue(
                    "/v1/responses", "POST", end=False, headers=[("content-type", JSON)]
                )
                client.h2.send_data(stream, body, end_stream=True)
                await client.flush()
                await client.read_until(lambda stream=stream: b"delta" in client.body(stream))  # type: ignore[misc]  # bound default
                streams.append(stream)
            client.h2.reset_stream(streams[0], 8)
            await client.flush()
            await engine.aborted.wait()
            assert service.fanout.running == 1
            assert client.reset(streams[1]) is None


@pytest.mark.wire("P23")
@pytest.mark.parametrize("turns", range(0, 60, 3))
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
async def test_leaving_at_any_moment_leaves_nothing_running(
    host: tuple[WatchedEngine, Any, str], protocol: str, turns: int
) -> None:
    engine, service, url = host
    port = int(url.rpartition(":")[2])
    body = json.dumps({"model": "plain/hold", "input": "hi"}).encode()
    tries = 5
    with anyio.fail_after(20):
        for _ in range(tries):
            if protocol == "HTTP/2":
                async with H2Client.connect(port) as client:
                    stream = client.queue(
                        "/v1/responses", "POST", end=False, headers=[("content-type", JSON)]
                    )
                    client.h2.send_data(stream, body, end_stream=True)
                    await client.flush()
                    await some(turns)
                    client.h2.reset_stream(stream, 8)
                    await client.flush()
                    await some(50)
            else:
                head = (
                    f"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n"
                    f"content-length: {len(body)}\r\n\r\n"
                )
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head.encode() + body)
                await some(turns)
                writer.close()
        # An h2 request may be reset before it is begun; the one after it is always handled.
        async with httpx.AsyncClient(base_url=url) as client_of_health:
            await client_of_health.get("/health")
        while engine.requests_handled < tries + 1 and protocol == "HTTP/1.1":
            await engine.one_handled.wait()
        while service.fanout.running:
            await some(1)
    assert service.fanout.running == 0


async def some(turns: int) -> None:
    """Let the event loop turn that often."""
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
