"""The server's end of the scripted engine: an ``EnginePort`` over a socket."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import cast

from benchmarks.serving.hand_off import ABORT, COMMAND, STOP, SUBMIT, Decoder
from benchmarks.serving.words import SIZE

from antiphon.engines.port import EngineInfo, EngineRequest, StepFrame

CONTEXT_LENGTH = 2**20
MAX_RUNNING = 4096


class ScriptedEngine:
    """The engine of another process. When that has gone, the frames end."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._wire: _Wire | None = None

    async def start(self) -> EngineInfo:
        """Ready at once."""
        info = EngineInfo(
            name="scripted",
            model_id="scripted",
            vocab_size=SIZE,
            context_length=CONTEXT_LENGTH,
            eos_ids=frozenset(),
            max_running=MAX_RUNNING,
            page_size=1,
            kv_pages=0,
            dtype="none",
            device="another process",
            capabilities=frozenset({"seed"}),
        )
        loop = asyncio.get_running_loop()
        self._link.setblocking(False)
        _, self._wire = await loop.create_unix_connection(lambda: _Wire(info), sock=self._link)
        return info

    def submit(self, request: EngineRequest) -> None:
        """Pass the request on."""
        self._tell(SUBMIT, request.key, request.max_tokens)

    def abort(self, keys: Sequence[int]) -> None:
        """Pass the keys on; they end before the next step."""
        for key in keys:
            self._tell(ABORT, key, 0)

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames, until the other process has ended."""
        if self._wire is None:
            raise RuntimeError("the engine was not started")
        return self._wire.frames()

    async def stop(self, grace_s: float) -> None:
        """No new work; the engine ends by itself, what is open after ``grace_s`` aborted."""
        if self._wire is not None:
            self._tell(STOP, 0, round(grace_s * 1000))
            await self._wire.lost.wait()

    def _tell(self, kind: int, key: int, tokens: int) -> None:
        if self._wire is not None:
            self._wire.write(COMMAND.pack(kind, key, tokens))


class _Wire(asyncio.Protocol):
    """The connection to the engine's process."""

    def __init__(self, info: EngineInfo) -> None:
        self._info = info
        self._decoder = Decoder()
        self._frames: deque[StepFrame] = deque()
        self._arrived = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is no instance of it

    def data_received(self, data: bytes) -> None:
        self._frames.extend(self._decoder.feed(data))
        self._arrived.set()

    def connection_lost(self, error: Exception | None) -> None:
        del error  # whatever it was, the engine is gone
        self._info.healthy = False
        self.lost.set()
        self._arrived.set()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.lost.is_set():
            self._transport.write(data)

    async def frames(self) -> AsyncIterator[StepFrame]:
        """All frames in order, until the connection is lost and they are read."""
        while True:
            self._arrived.clear()
            while self._frames:
                yield self._frames.popleft()
            if self.lost.is_set():
                return
            await self._arrived.wait()
