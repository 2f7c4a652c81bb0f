"""While the model is loaded the port is served already; and a signal ends even that."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import antiphon.serving
from antiphon import __version__
from antiphon.config import Config
from antiphon.errors import StartupError
from antiphon.loading import Loaded, load_replay
from antiphon.serving import serve_forever
from antiphon.transport.listener import Listener, listen

FIXTURES = Path(__file__).parents[2] / "fixtures"
CONFIG = Config(engine="replay", fixtures=FIXTURES, pace="full", port=0, api_key=("key",))
HELLO = {"model": "plain/hello", "input": "hi"}
KEY = {"authorization": "Bearer key"}
UNKNOWN = 'antiphon_requests_total{{endpoint="unknown",status="{status}"}} {count}.0\n'
GUARD_S = 20


class Slow:
    """Loading that takes until ``go_on`` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.go_on = anyio.Event()
        self.begun = anyio.Event()
        self.opened = anyio.Event()
        self.url = ""
        patch.setattr(antiphon.serving, "load", self.load)
        patch.setattr(antiphon.serving, "listen", self.listen)

    def listen(self, *arguments: Any, **options: Any) -> Listener:
        listener = listen(*arguments, **options)
        self.url = listener.url
        return listener

    async def load(self, config: Config, restarted: object) -> Loaded:
        self.begun.set()
        await self.go_on.wait()
        return await load_replay(config)

    def say(self, line: str) -> None:
        if line.startswith("Serving"):
            self.opened.set()


@asynccontextmanager
async def starting(slow: Slow) -> AsyncIterator[httpx.AsyncClient]:
    """A server that is being loaded; the block ends when it has ended, by a signal."""
    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_forever, CONFIG, slow.say)
            await slow.begun.wait()
            async with httpx.AsyncClient(base_url=slow.url) as client:
                # Answered, so that the signal is heard by the server.
                assert (await client.get("/live")).status_code == 200
                yield client
            signal.raise_signal(signal.SIGTERM)


async def test_probes_say_that_it_starts_and_then_that_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Slow(monkeypatch)
    async with starting(slow) as client:
        assert (await client.get("/version")).json() == {"version": __version__}
        for path in ("/health", "/ready"):
            response = await client.get(path)
            assert (response.status_code, response.json()) == (503, {"status": "starting"})
        refused = await client.post("/v1/responses", json=HELLO, headers=KEY)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "engine_unavailable"
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["x-request-id"]
        assert (await client.post("/v1/responses", json=HELLO)).status_code == 401
        metrics = await client.get("/metrics")
        assert metrics.status_code == 200
        assert UNKNOWN.format(status=503, count=1) in metrics.text
        assert "antiphon_requests_running 0.0\n" in metrics.text
        slow.go_on.set()
        await slow.opened.wait()
        assert (await client.get("/ready")).json() == {"status": "ok"}
        answered = await client.post("/v1/responses", json=HELLO, headers=KEY)
        assert answered.json()["status"] == "completed"
        # What was counted before is not forgotten.
        metrics = await client.get("/metrics")
        assert UNKNOWN.format(status=503, count=1) in metrics.text
        assert UNKNOWN.format(status=401, count=1) in metrics.text


async def test_a_signal_ends_a_server_that_is_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with starting(Slow(monkeypatch)):
        pass


async def test_a_model_that_cannot_be_loaded_ends_it_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(config: Config, restarted: object) -> Loaded:
        raise StartupError("no such model")

    monkeypatch.setattr(antiphon.serving, "load", fail)
    with anyio.fail_after(GUARD_S), pytest.raises(StartupError, match="no such model"):
        await serve_forever(CONFIG, lambda line: None)


class Panic(BaseException):
    """As native libraries raise it: no ``Exception``."""


async def test_whatever_a_load_raises_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(config: Config, restarted: object) -> Loaded:
        raise Panic("range end index 2 out of range")

    monkeypatch.setattr(antiphon.serving, "load", fail)
    with anyio.fail_after(GUARD_S), pytest.raises(Panic, match="out of range"):
        await serve_forever(CONFIG, lambda line: None)
