"""Runs of a scripted engine behind real sockets, and a look at everything that waits for a reader.

An engine step is taken when a test says so, and its end writes to every connection, as in a server.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import Finish
from antiphon.runs.run import Run
from antiphon.runs.subscribers import Subscription
from antiphon.transport import http1_sending, http2_sending
from antiphon.transport.limits import Limits
from antiphon.transport.send_buffer import Load, SendBuffer
from antiphon.transport.settings import HostConfig
from antiphon.transport.sink import FrameSink
from antiphon.transport.wire import Wire
from runs.scripted import Stage
from transport.hosting import GUARD_S, certificate, new_request_id, serving_on
from transport.streaming import Streaming

SMALL = 8 * 1024
"""Bytes of the buffers that the system keeps for a socket, about."""
EVERY = 10
"""Steps of a flood between two turns of the event loop."""


class Watched(Subscription):
    """Keeps the most that it has held."""

    most = 0

    @property
    def waits(self) -> int:
        """Bytes that its reader has not been offered with success."""
        return self._size

    @property
    def level(self) -> bool:
        return self._level is not None

    def take(self, frames: list[bytes]) -> None:
        super().take(frames)
        self.most = max(self.most, self._size)


class Theatre:
    """``/NAME`` streams the run NAME, which the test steps."""

    def __init__(
        self, app: Streaming, config: HostConfig, backlog: int, trust: ssl.SSLContext | None
    ) -> None:
        self.app, self.config = app, config
        self.trust = trust
        """What its clients trust, if it has a certificate."""
        self.stage = Stage()
        self.runs: dict[str, Run] = {}
        self._mirror = Stage()
        self._unread: dict[str, Run] = {}
        self.readers: dict[str, Watched] = {}
        self.sinks: dict[str, FrameSink] = {}
        self.buffers: list[SendBuffer] = []
        """Of all answers so far."""
        self.most: dict[int, int] = {}
        """The most bytes that a buffer has held, and all of a connection, by their identity."""
        self.most_unsent = 0
        self.ended: set[str] = set()
        """Runs whose handlers have ended."""
        self._changed = anyio.Event()
        self._backlog = backlog
        app.answers(self._answer)

    async def _answer(self, path: str, sink: FrameSink) -> None:
        name = path[1:]
        run = self.runs[name] = self.stage.open(tail=name)
        self.stage.accept(run)
        self._unread[name] = self._mirror.open(tail=name)
        self._mirror.accept(self._unread[name])
        leave = partial(self.stage.fanout.cancel, run)
        reader = Watched(run, ping_s=0, leave=leave, backlog=self._backlog)
        try:
            await sink.start(200, [(b"content-type", b"text/event-stream")])
            reader.attach(sink)
            self.readers[name], self.sinks[name] = reader, sink
            self._tell()
            await sink.finished()
        finally:
            reader.close()
            self.ended.add(name)
            self._tell()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the begin or the end of answers."""
        with anyio.fail_after(GUARD_S):
            while not condition():
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def say(self, text: bytes, *names: str, finish: Finish = Finish.NONE) -> None:
        """One step in which these runs, or all, get ``text``."""
        keys, unread = [], []
        for name in names or self.runs:
            if not self.runs[name].ended:
                keys.append(self.runs[name].choices[0].key)
                unread.append(self._unread[name].choices[0].key)

        def rows(keys: list[int], frame: FrameBuilder) -> None:
            for key in keys:
                frame.row(key, text, finish=finish)

        self._mirror.step(partial(rows, unread))
        self.stage.step(partial(rows, keys))
        self.config.flush.run()

    async def flood(self, steps: int, text: bytes, *names: str) -> None:
        """Steps as fast as they come, with turns of the loop for whoever can write."""
        for step in range(steps):
            self.say(text, *names)
            if step % EVERY == 0:
                await anyio.lowlevel.checkpoint()

    def frames_of(self, name: str) -> bytes:
        """All that the run of this name has sent, as one of the same name that nobody reads."""
        return b"".join(self._unread[name].frames)

    def sent(self, name: str) -> int:
        """Bytes of that."""
        return sum(map(len, self._unread[name].frames))

    @property
    def peak(self) -> int:
        """The most bytes that one buffer has held."""
        return max(self.most.get(id(each), 0) for each in self.buffers)

    @property
    def aborted(self) -> set[str]:
        """Runs that were aborted in the engine."""
        keys = {run.choices[0].key: name for name, run in self.runs.items()}
        return {keys[key] for key in self.stage.engine.aborted}


@asynccontextmanager
async def theatre(
    monkeypatch: pytest.MonkeyPatch,
    limits: Limits,
    *,
    backlog: int = 8 * 1024 * 1024,
    tls: Path | None = None,
) -> AsyncIterator[Theatre]:
    """For the length of a test; ``tls`` is a directory for a certificate."""
    cert, trust = certificate(tls) if tls is not None else (None, None)
    app = Streaming(cert)
    # Inherited by its connections: what the system takes for a reader is not what we measure.
    app.listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    config = HostConfig(new_request_id, limits)
    it = Theatre(app, config, backlog, trust)

    class WatchedBuffer(SendBuffer):
        """Tells what it holds."""

        def __init__(self, limits: Limits, load: Load, stalled: Callable[[], None]) -> None:
            super().__init__(limits, load, stalled)
            it.buffers.append(self)

        def offer(self, data: bytes) -> bool:
            taken = super().offer(data)
            it.most[id(self)] = max(it.most.get(id(self), 0), self.size)
            it.most[id(self._load)] = max(it.most.get(id(self._load), 0), self._load.queued)
            return taken

    write = Wire.write

    def watched_write(self: Wire, data: bytes) -> None:
        write(self, data)
        it.most_unsent = max(it.most_unsent, self._transport.get_write_buffer_size())

    for module in (http1_sending, http2_sending):
        monkeypatch.setattr(module, "SendBuffer", WatchedBuffer)
    monkeypatch.setattr(Wire, "write", watched_write)
    async with serving_on(app, [app.listener], config):
        yield it
