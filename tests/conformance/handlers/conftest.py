"""The library README's handlers, each served on a real socket."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import hypercorn.asyncio
import hypercorn.config
import pytest
from aiohttp import web

from responsory import EventLog
from responsory.segments import Piece

README = Path(__file__).parents[3] / "statemachines" / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
TWENTY = "logs = defaultdict(EventLog)"
ANSWER = "async def answer(pieces"
HANDLERS: Mapping[str, tuple[str, ...]] = {
    "twenty-lines": (TWENTY,),
    "starlette": (ANSWER, "class EventStream"),
    "aiohttp": (ANSWER, "from aiohttp"),
}
"""Each handler of the README, by a sign of each block that it consists of."""

Program = dict[str, Any]


def block(sign: str) -> str:
    """The one block of the README that has ``sign`` in it."""
    found: list[str] = [code for code in BLOCKS if sign in code]
    assert len(found) == 1
    return found[0]


def program_of(*signs: str) -> Program:
    """What the blocks with these signs define."""
    program: Program = {"__name__": "handler"}
    for sign in signs:
        exec(compile(block(sign), str(README), "exec"), program)
    return program


@asynccontextmanager
async def hypercorn_serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    config = hypercorn.config.Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.errorlog = None
    config.graceful_timeout = 1
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def serve() -> None:
            await hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait)

        tasks.start_soon(serve)
        yield
        stop.set()


@asynccontextmanager
async def aiohttp_serving(app: web.Application, listener: socket.socket) -> AsyncIterator[None]:
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    yield
    await runner.cleanup()


class Served:
    """``program``: the names that the README's code defined; ``engine`` is put in the place of its
    engine. ``client``: of the API it serves."""

    def __init__(self, program: Program, url: str, client: httpx.AsyncClient) -> None:
        self.program = program
        self.url = url
        self.client = client
        self.own_engine = program["engine"]

    @property
    def log(self) -> EventLog:
        """The log of the only response so far."""
        (log,) = self.program["logs"].values()
        assert isinstance(log, EventLog)
        return log

    async def stream(self, prompt: str = "hi", **options: Any) -> bytes:
        answer = await self.client.post("/v1/responses", json={"input": prompt, **options})
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
        return answer.content


@pytest.fixture(params=HANDLERS)
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with serving_handler(request.param) as each:
        yield each


@asynccontextmanager
async def serving_handler(name: str) -> AsyncIterator[Served]:
    """The handler of this name, on a real socket."""
    program = program_of(*HANDLERS[name])
    serving = aiohttp_serving if name == "aiohttp" else hypercorn_serving
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        serving(program["app"], listener),
        httpx.AsyncClient(base_url=url, timeout=30) as client,
    ):
        yield Served(program, url, client)


class Engine:
    """One that says a word and then hangs, or talks for ever, until it is closed."""

    def __init__(self, talks: bool) -> None:
        self.talks = talks
        self.closed = anyio.Event()

    async def __call__(self, prompt: str) -> AsyncGenerator[Piece]:
        try:
            yield Piece("Hi", (0,))
            while self.talks:
                await anyio.lowlevel.checkpoint()
                yield Piece(" again", (1,))
            await anyio.sleep_forever()
        finally:
            self.closed.set()
