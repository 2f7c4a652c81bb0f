"""The engine's process dies under a server: what its clients see, and what comes after."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest

from antiphon.api.counters import Metrics
from antiphon.app import make_app, make_service, new_tail, running
from antiphon.engines.child.engine import ChildEngine
from antiphon.engines.supervisor import Supervisor
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.catalogue import ServedModel
from antiphon.transport.ending import Ending
from antiphon.transport.limits import DEFAULT_LIMITS
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on
from engines.frame_watch import HANG_GUARD_S
from engines.process.rigs import fake
from engines.replay.builders import ManualClock

ROOT = Path(__file__).parents[3]
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
HELD: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5000},
    COMPLETIONS: {"prompt": "hi", "max_tokens": 5000},
    RESPONSES: {"input": "hi", "max_output_tokens": 5000},
}

FORM = {"enum": ["left", "right"]}


@attrs.define
class Served:
    """A server over a process that is started again, and the clock of its waits."""

    client: httpx.AsyncClient
    clock: ManualClock
    lives: list[ChildEngine]

    async def kill(self) -> None:
        process = self.lives[-1].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await process.reaped()

    async def until_ready(self, status: int) -> httpx.Response:
        while (response := await self.client.get("/ready")).status_code != status:
            pass
        return response

    async def restarts(self) -> float:
        return await value(self.client, "antiphon_engine_restarts_total")


async def value(client: httpx.AsyncClient, name: str) -> float:
    """A number of ``/metrics``."""
    text = (await client.get("/metrics")).text
    (line,) = [one for one in text.splitlines() if one.startswith(f"{name} ")]
    return float(line.split()[1])


@asynccontextmanager
async def served(grace_s: float = 0) -> AsyncIterator[Served]:
    clock, metrics, lives, ending = ManualClock(), Metrics(), list[ChildEngine](), Ending()

    def make() -> ChildEngine:
        lives.append(fake())
        return lives[-1]

    engine = Supervisor(make, clock=clock, restarted=metrics.engine_restarted)
    info = await engine.start()
    model = ServedModel(id="m", created=0, prompter=ReplayPrompter(5, "bytes"), info=info)
    service = make_service(engine, [model], counted=metrics)
    with bind("127.0.0.1", 0) as listener, anyio.fail_after(HANG_GUARD_S):
        async with running(service), anyio.create_task_group() as tasks:
            tasks.start_soon(
                partial(
                    serve_on,
                    make_app(service),
                    [listener],
                    ending,
                    config=HostConfig(new_tail, DEFAULT_LIMITS),
                    grace_s=grace_s,
                    drain=partial(service.fanout.drain, grace_s),
                )
            )
            async with httpx.AsyncClient(base_url=listener.url, timeout=HANG_GUARD_S) as client:
                yield Served(client, clock, lives)
                ending.ask()


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def terminal(path: str, text: str) -> list[Any]:
    """The events that end a stream."""
    found = events(text)
    if path == RESPONSES:
        kinds = {"response.completed", "response.incomplete", "response.failed"}
        return [one for one in found if one != "[DONE]" and one["type"] in kinds]
    return [one for one in found if one != "[DONE]" and "error" in one]


async def test_streams_end_answers_fail_and_the_next_life_serves() -> None:
    async with served() as server:
        streams: dict[int, tuple[str, str]] = {}
        unary: list[httpx.Response] = []

        async def stream(number: int, path: str) -> None:
            body = {"model": "m", "stream": True, **HELD[path]}
            async with server.client.stream("POST", path, json=body) as response:
                assert response.status_code == 200
                await response.aread()
            streams[number] = (path, response.text)

        async def answer(path: str) -> None:
            unary.append(await server.client.post(path, json={"model": "m", **HELD[path]}))

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(stream, number, list(HELD)[number % 3])
            for path in HELD:
                tasks.start_soon(answer, path)
            while await value(server.client, "antiphon_requests_running") < 11:
                pass
            await server.kill()
        for path, text in streams.values():
            assert len(terminal(path, text)) == 1, text
            assert "server_error" in json.dumps(terminal(path, text)[0])
            assert events(text)[-1] == "[DONE]"
        assert len(streams) == 8
        for response in unary:
            assert response.status_code == 500
            assert response.json()["error"]["code"] == "server_error"
        assert (await server.client.get("/ready")).json() == {"status": "engine_dead"}
        refused = await server.client.post(CHAT, json={"model": "m", **HELD[CHAT]})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "engine_unavailable"
        assert int(refused.headers["retry-after"]) >= 1
        assert await server.restarts() == 0
        await server.clock.parked(500_000_000)
        await server.clock.advance(500_000_000)
        await server.until_ready(200)
        assert await server.restarts() == 1
        body = {"model": "m", "prompt": "hi", "max_tokens": 4}
        answer_ = await server.client.post(COMPLETIONS, json=body)
        assert answer_.json()["choices"][0]["text"] == "aaaa"


async def test_a_server_that_ends_while_its_engine_is_started_again_ends_at_once() -> None:
    async with served(grace_s=HANG_GUARD_S) as server:
        await server.kill()
        await server.until_ready(503)


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
async def test_the_whole_program() -> None:
    """``antiphon serve`` on a real model, its engine killed by number."""
    command = [
        sys.executable, "-m", "antiphon", "serve", "fixtures/models/tinychat", "--port", "0",
        "--engine-process", "child", "--device", "cpu",
    ]  # fmt: skip
    body = {
        "model": "tinychat",
        "temperature": 0,
        "messages": [{"role": "user", "content": "hi"}],
    }
    with anyio.fail_after(HANG_GUARD_S):
        async with await anyio.open_process(command, stderr=None, cwd=ROOT) as server:
            assert server.stdout is not None
            url, text = "", ""
            while "Try it" not in text:
                text += (await server.stdout.receive()).decode()
            url = next(line.split()[1] for line in text.splitlines() if line.startswith("Address"))
            async with httpx.AsyncClient(base_url=url, timeout=HANG_GUARD_S) as client:
                before = await client.post(CHAT, json=body)
                assert before.status_code == 200
                children = f"/proc/{server.pid}/task/{server.pid}/children"
                (child,) = (await anyio.Path(children).read_text()).split()
                os.kill(int(child), signal.SIGKILL)
                while not await value(client, "antiphon_engine_restarts_total"):  # noqa: ASYNC110
                    await anyio.sleep(0.02)  # the model needs the core
                assert (await client.get("/ready")).status_code == 200
                after = await client.post(CHAT, json=body)
                assert after.json()["choices"] == before.json()["choices"]
                form = {"type": "json_schema", "json_schema": {"name": "f", "schema": FORM}}
                held = await client.post(CHAT, json={**body, "response_format": form})
                assert json.loads(held.json()["choices"][0]["message"]["content"]) in FORM["enum"]
            server.send_signal(signal.SIGTERM)
            assert await server.wait() == 0
