"""Event frames that are ready to be sent, and a clock that hands one to every stream at each tick.

What is behind the frames of a real server (text, machine, log, projection) is missing, so that
only the transport is measured. A frame is of our own server's shape and length, made once for all
streams of a tick.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from benchmarks.peers import Api
from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.words import SIZE, word

from antiphon.transport.sink import FrameSink
from responsory import Response
from responsory.commands import Accept, Text
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream

DONE = b"data: [DONE]\n\n"
PATIENCE_S = 0.25
"""How long streams wait for others to begin with them, after the latest has come."""


def _frame_around(stream: ChatStream | CompletionsStream | ResponsesStream) -> tuple[bytes, bytes]:
    """What stands before and after the text of a token in its frame."""
    machine = Response()
    accept = Accept("01a22cb0bbea71b8be094da1c26e61e9", 1764500000, False, {"model": "tiny"})
    for command in (accept, Text(word(0).decode()), Text(word(1).decode())):
        frames = stream.feed(0, machine.receive(command))
    before, _, after = frames[-1].partition(word(1))
    return before, after


AROUND: Mapping[Api, tuple[bytes, bytes]] = {
    "chat": _frame_around(ChatStream()),
    "completions": _frame_around(CompletionsStream()),
    "responses": _frame_around(ResponsesStream()),
}


class PreparedStream:
    """One answer: iterated, or attached to a frame sink where the host has one."""

    def __init__(self, ticker: Ticker, api: Api, tokens: int) -> None:
        self.api = api
        self.left = tokens
        self._ticker = ticker
        self._ready: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._sink: FrameSink | None = None
        ticker.add(self)

    def put(self, frame: bytes) -> None:
        """The next frame. Those that a sink has no room for are lost, and the run is void."""
        self.left -= 1
        if self._sink is not None:
            self._sink.offer(frame if self.left else frame + DONE)
            if not self.left:
                self._sink.end()
            return
        self._ready.append(frame)
        if not self.left:
            self._ready.append(DONE)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def attach(self, sink: FrameSink) -> None:
        """From now on frames go to ``sink``, what there is already first."""
        if self._ready:
            sink.offer(b"".join(self._ready))
        if not self.left:
            sink.end()
        self._sink = sink

    def __aiter__(self) -> PreparedStream:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if not self.left:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Nobody reads any more; idempotent."""
        self._ticker.discard(self)


class Ticker:
    """Ticks while there are streams. ``together``: so many begin at once."""

    def __init__(self, together: int, step_us: int, times: StepTimes | None) -> None:
        self._together = together
        self._step_s = step_us / 1e6
        self._times = times
        self._tick = 0
        self._streams: set[PreparedStream] = set()
        self._task: asyncio.Task[None] | None = None
        self._came = asyncio.Event()

    def add(self, stream: PreparedStream) -> None:
        """A frame at every tick from now on, as many as it has left."""
        self._streams.add(stream)
        self._came.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def discard(self, stream: PreparedStream) -> None:
        """No frame any more; idempotent."""
        self._streams.discard(stream)

    async def _run(self) -> None:
        with suppress(TimeoutError):
            while len(self._streams) < self._together:
                self._came.clear()
                async with asyncio.timeout(PATIENCE_S):
                    await self._came.wait()
        due = time.monotonic()
        while self._streams:
            self._step()
            due = max(due + self._step_s, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    def _step(self) -> None:
        number = self._tick % SIZE
        text = word(number)
        made = {api: text.join(around) for api, around in AROUND.items()}
        if self._times is not None:
            self._times[number] = time.monotonic_ns()
        for stream in list(self._streams):
            stream.put(made[stream.api])
            if not stream.left:
                self._streams.discard(stream)
        self._tick += 1
