"""The whole program is told to end, by signals, with clients of all kinds on it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from transport.hosting import H2Client

FIXTURES = Path(__file__).parents[2] / "fixtures"
GUARD_S = 60
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
ASKS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    COMPLETIONS: {"prompt": "hi"},
    RESPONSES: {"input": "hi"},
}
ENDLESS = "plain/hold"


@attrs.frozen
class Program:
    """``antiphon serve`` in a process of its own."""

    process: Process
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, *, http2: bool) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, http1=not http2, http2=http2, timeout=GUARD_S, trust_env=False
        )

    def signal(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def until_draining(self) -> None:
        """Whoever asks is told, on a new connection."""
        async with self.client(http2=False) as client:
            while (health := await client.get("/ready")).status_code == 200:
                pass
            assert health.json() == {"status": "draining"}


@asynccontextmanager
async def program(*arguments: str) -> AsyncIterator[Program]:
    command = [
        sys.executable, "-m", "antiphon", "serve", "--port", "0", "--engine", "replay",
        "--fixtures", str(FIXTURES), *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with anyio.fail_after(GUARD_S):
        async with await anyio.open_process(command, env=environment, stderr=None) as process:
            assert process.stdout is not None
            lines = BufferedByteReceiveStream(process.stdout)
            url = ""
            try:
                while not url:
                    line = (await lines.receive_until(b"\n", 10_000)).decode()
                    url = line.split()[1] if line.startswith("Address") else ""
                yield Program(process, url)
            finally:
                if process.returncode is None:
                    process.kill()


async def read(pieces: AsyncIterator[bytes], begun: anyio.Event) -> bytes:
    data = b""
    async for piece in pieces:
        data += piece
        if b"delta" in data or b'"text":"' in data:
            begun.set()
    return data


async def test_all_that_is_open_ends_well_and_the_status_is_0() -> None:
    """Six streams of each protocol, connections that wait, and half a request."""
    answers: list[tuple[str, bytes]] = []
    begun: list[anyio.Event] = []
    async with program("--pace", "30ms", "--drain-timeout", "600") as it, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(it.client(http2=each)) for each in (False, True)]
        waiting = await stack.enter_async_context(H2Client.connect(it.port))
        assert await waiting.get("/live") == b'{"status":"ok"}'
        fresh = await stack.enter_async_context(H2Client.connect(it.port))
        await fresh.read()
        half = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", it.port))
        await half.send(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-le")

        async def ask(client: httpx.AsyncClient, path: str, started: anyio.Event) -> None:
            body = {"model": "plain/hello", "stream": True, **ASKS[path]}
            async with client.stream("POST", path, json=body) as response:
                answers.append((path, await read(response.aiter_bytes(), started)))

        async with anyio.create_task_group() as tasks:
            for client in clients:
                for path in ASKS:
                    for _ in range(2):
                        begun.append(anyio.Event())
                        tasks.start_soon(ask, client, path, begun[-1])
            for each in begun:
                await each.wait()
            it.signal()
        assert await it.process.wait() == 0
        await waiting.read_to_end()
        assert waiting.goaways == [0]
    assert len(answers) == 12
    for path, data in answers:
        assert data.count(b"data: [DONE]") == 1
        assert data.rstrip().endswith(b"data: [DONE]")
        good = b"event: response.completed" if path == RESPONSES else b'"finish_reason":"stop"'
        assert data.count(good) == 1


@pytest.mark.parametrize("again", [False, True], ids=["deadline", "second-signal"])
async def test_what_does_not_end_is_ended_and_the_status_is_0(again: bool) -> None:
    answers: list[tuple[int, bytes]] = []
    begun: list[anyio.Event] = []
    time = "600" if again else "0.5"
    async with (
        program("--pace", "10ms", "--drain-timeout", time) as it,
        it.client(http2=False) as plain,
        it.client(http2=True) as streams,
        it.client(http2=True) as bodies,  # httpx cannot read past streams that wait
    ):

        async def ask(
            client: httpx.AsyncClient, path: str, stream: bool, started: anyio.Event
        ) -> None:
            body = {"model": ENDLESS, "stream": stream, **ASKS[path]}
            async with client.stream("POST", path, json=body) as response:
                data = await read(response.aiter_bytes(), started)
                answers.append((response.status_code, data))

        async with anyio.create_task_group() as tasks:
            for path in ASKS:
                for client in (plain, streams):
                    begun.append(anyio.Event())
                    tasks.start_soon(ask, client, path, True, begun[-1])
                for client in (plain, bodies):
                    tasks.start_soon(ask, client, path, False, anyio.Event())
            for each in begun:
                await each.wait()
            it.signal()
            if again:
                await it.until_draining()
                it.signal()
        assert await it.process.wait() == 0
    assert sorted(status for status, _ in answers) == [200] * 6 + [503] * 6
    for status, data in answers:
        assert b"shutting down" in data
        if status == 200:
            assert data.count(b"data: [DONE]") == 1
            assert data.rstrip().endswith(b"data: [DONE]")


async def test_where_nothing_is_open_it_is_over_at_once() -> None:
    async with program("--drain-timeout", "600") as it, it.client(http2=False) as pooled:
        assert (await pooled.get("/ready")).status_code == 200
        it.signal()
        assert await it.process.wait() == 0
