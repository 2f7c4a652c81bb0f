"""The application behind a real socket, over an engine that does what a test tells it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx

from antiphon.api.service import Service
from antiphon.app import make_app, make_service, new_tail, running
from antiphon.config import Config
from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import EngineError, EngineInfo, EngineRequest, Finish, Gauges, StepFrame
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.catalogue import ServedModel
from antiphon.transport.ending import Ending
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.listener import Listener, bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on
from transport.hosting import GUARD_S, certificate

PROMPT_TOKENS = 5
PROTOCOLS = ("HTTP/1.1", "HTTP/2")
JSON = {"content-type": "application/json"}
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    COMPLETIONS: {"model": "m", "prompt": "hi"},
    RESPONSES: {"model": "m", "input": "hi"},
}


class SteeredEngine:
    """Accepts what it is given, or refuses it with ``refusal``; all else is told by the test."""

    def __init__(self) -> None:
        self.refusal: EngineError | None = None
        self.requests: list[EngineRequest] = []
        self.aborted: list[int] = []
        self.running = 0
        """What its frames say of its load."""
        self._send, self._receive = anyio.create_memory_object_stream[StepFrame](1000)
        self._changed = anyio.Event()
        self._open: set[int] = set()
        self._step = 0
        self._stopped = False
        self.info = EngineInfo(
            name="steered",
            model_id="m",
            vocab_size=256,
            context_length=100,
            eos_ids=frozenset(),
            max_running=8,
            page_size=16,
            kv_pages=64,
            dtype="none",
            device="none",
            capabilities=frozenset({"seed", "logprobs", "grammar"}),
        )

    async def start(self) -> EngineInfo:
        return self.info

    def submit(self, request: EngineRequest) -> None:
        self.requests.append(request)
        self._open.add(request.key)
        if self.refusal is None:
            self.rows(lambda frame: frame.row(request.key))
        else:
            self.end(request.key, Finish.ERROR, self.refusal)
        self._tell()

    def abort(self, keys: Sequence[int]) -> None:
        self.aborted += keys
        self._open -= set(keys)
        self._tell()

    def rows(self, add: Callable[[FrameBuilder], None]) -> None:
        """One step with the rows that ``add`` adds."""
        self._step += 1
        builder = FrameBuilder(self._step)
        add(builder)
        frame = builder.build(self._step, Gauges(running=self.running))
        self._send.send_nowait(frame)
        self._open -= {key for key, end in zip(frame.key, frame.finish, strict=True) if end}
        self._tell()

    def say(self, key: int, text: bytes) -> None:
        """One step in which the request ``key`` got some tokens, one a byte."""
        self.rows(lambda frame: frame.row(key, text))

    def end(self, key: int, finish: Finish, error: EngineError | None = None) -> None:
        self.rows(lambda frame: frame.row(key, finish=finish, error=error))

    def die(self) -> None:
        """The frames end, whatever is open."""
        self._send.close()

    async def frames(self) -> AsyncIterator[StepFrame]:
        async with self._receive:
            async for frame in self._receive:
                yield frame

    async def stop(self, grace_s: float) -> None:
        with anyio.move_on_after(grace_s):
            while self._open:
                await self._changed.wait()
        if not self._stopped:
            self._stopped = True
            for key in sorted(self._open):
                self.end(key, Finish.ABORT)
            self.die()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a submission, an abort or a step that makes it true."""
        with anyio.fail_after(GUARD_S):
            while not condition():
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@attrs.define
class Hosted:
    """A server in the test's own event loop, and its inside."""

    engine: SteeredEngine
    service: Service
    listener: Listener
    ending: Ending
    """Ends the server; leaving the block does so too."""
    trust: ssl.SSLContext | None = None
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    """The server has ended."""

    @asynccontextmanager
    async def client(self, protocol: str = "HTTP/1.1") -> AsyncIterator[httpx.AsyncClient]:
        http2 = protocol == "HTTP/2"
        async with httpx.AsyncClient(
            base_url=self.listener.url,
            http1=not http2,
            http2=http2,
            timeout=GUARD_S,
            verify=self.trust or True,
        ) as client:
            yield client

    async def until_ended(self) -> None:
        with anyio.fail_after(GUARD_S):
            await self.ended.wait()


@asynccontextmanager
async def hosted(
    clock: Callable[[], float] | None = None,
    *,
    grace_s: float = 0,
    tls: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
    **settings: Any,
) -> AsyncIterator[Hosted]:
    """``settings`` of the server, ``limits`` of its host; ``clock`` is that of the rate limit,
    ``grace_s`` what answers get when the server ends. With ``tls``, a directory for its
    certificate, it serves over TLS."""
    engine = SteeredEngine()
    model = ServedModel(
        id="m",
        created=0,
        prompter=ReplayPrompter(PROMPT_TOKENS, "bytes"),
        info=await engine.start(),
    )
    service = make_service(engine, [model], Config(**settings))
    service.monotonic_s = clock or service.monotonic_s
    ending = Ending()
    cert, trust = certificate(tls) if tls is not None else ((), None)
    with bind("127.0.0.1", 0, *cert) as listener:
        async with running(service), anyio.create_task_group() as tasks:
            host = Hosted(engine, service, listener, ending, trust)

            async def run() -> None:
                await serve_on(
                    make_app(service),
                    [listener],
                    ending,
                    config=HostConfig(new_tail, limits),
                    grace_s=grace_s,
                    drain=partial(service.fanout.drain, grace_s),
                )
                host.ended.set()

            tasks.start_soon(run)
            yield host
            ending.ask()
