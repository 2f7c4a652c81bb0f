"""The life of an engine's process: what it is told, what it says, and how all of that ends."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from antiphon.engines.child.link import Link
from antiphon.engines.child.loading import stalled
from antiphon.engines.child.process import EngineProcess
from antiphon.engines.child.pulse import Pulse
from antiphon.engines.clock import Clock
from antiphon.engines.codec.commands import encode_abort, encode_submit
from antiphon.engines.codec.envelope import CodecError, Kind, seal
from antiphon.engines.codec.frames import decode_frame
from antiphon.engines.codec.notices import decode_info, decode_text, encode_start
from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.outbox import Outbox
from antiphon.engines.port import (
    EngineError,
    EngineInfo,
    EngineRequest,
    EngineStartError,
    Finish,
    Gauges,
    StepFrame,
)

LINGER_S = 0.3
"""What an engine gets to end what is open once its time is over. A thread could not be interrupted;
a process is ended."""

log = logging.getLogger(__name__)


class Life:
    """One process, from its spawning to its end."""

    def __init__(
        self, argv: Sequence[str], options: dict[str, Any], *, hang_s: float, clock: Clock
    ) -> None:
        """Spawn it. Raises ``EngineStartError`` if the system does not."""
        ours, theirs = socket.socketpair()
        try:
            self.process = EngineProcess(argv, theirs)
        except OSError as failure:
            ours.close()
            raise EngineStartError(f"the engine's process cannot start: {failure}") from failure
        finally:
            theirs.close()
        self.outbox = Outbox()
        self.over = asyncio.Event()
        self._hang_s = hang_s
        self._clock = clock
        self._ready: asyncio.Future[EngineInfo] = asyncio.get_running_loop().create_future()
        self._info: EngineInfo | None = None
        self._pulse: Pulse | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[int, None] = {}  # a set in order of arrival
        """Keys whose terminal row has not come."""
        self._step = -1
        """The engine's last step."""
        self._own_frames = 0
        """Frames made here, which move the numbers of all that follow."""
        self._told_over = False
        self._failure: str | None = None
        """Why it is dead, if it did not end as it was told to."""
        self._link = Link(ours, self._take, self._ended)
        self._link.send(encode_start(options))
        self._loading = self._spawn(self._await_stall()) if hang_s else None

    async def loaded(self) -> EngineInfo:
        """Wait until it has loaded. Raises ``EngineStartError``. Cancelled, it ends the process."""
        try:
            return await self._ready
        except asyncio.CancelledError:
            self._die("nobody waits for it any more", Finish.ABORT)
            raise
        except _Lost as lost:
            await self.process.reaped()
            raise EngineStartError(
                f"the engine's process {self.process.story()} while it was loading ({lost})"
            ) from None

    def submit(self, request: EngineRequest) -> None:
        """Send the request, or refuse it if the engine is over."""
        if self.over.is_set():
            self._end_keys([request.key], Finish.ERROR)
            return
        try:
            message = encode_submit(request)
        except (OverflowError, TypeError, ValueError) as failure:
            error = EngineError(code="unsupported", message=f"it cannot be sent: {failure}")
            self._end_keys([request.key], Finish.ERROR, error)
            return
        self._open[request.key] = None
        self._link.send(message)

    def abort(self, keys: Sequence[int]) -> None:
        """Send the keys; the engine ends them before its next step."""
        if known := [key for key in keys if key in self._open]:
            self._link.send(encode_abort(known))

    async def stop(self, grace_s: float) -> None:
        """Refuse new requests, wait for the open ones, abort what is open after ``grace_s``.

        A process that does not heed that is ended.
        """
        self._link.send(seal(Kind.DRAIN))
        try:
            async with asyncio.timeout(grace_s):
                await self.over.wait()
        except TimeoutError:
            self._link.send(seal(Kind.ABORT_ALL))
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self.over.wait()
            self._die("it does not stop", Finish.ABORT)
        await self.process.reaped()

    def _take(self, kind: Kind, body: memoryview) -> None:
        """A message of the engine, in its order: READY or NOT_STARTED, frames, OVER."""
        match kind:
            case Kind.FRAME if self._info is not None and not self._told_over:
                self._forward(decode_frame(body))
            case Kind.PONG if self._pulse is not None:
                self._pulse.beat()
            case Kind.READY if self._info is None:
                self._info = decode_info(body)
                if self._loading is not None:
                    self._loading.cancel()
                self._watch()
                if not self._ready.done():
                    self._ready.set_result(self._info)
            case Kind.NOT_STARTED if self._info is None:
                text = decode_text(body) or "no reason is given"
                if not self._ready.done():
                    self._ready.set_exception(EngineStartError(" ".join(text.split())))
            case Kind.OVER if self._info is not None:
                self._told_over = True
                self._failure = decode_text(body)
            case _:
                raise CodecError(f"{kind.name} is out of its order")

    def _forward(self, frame: StepFrame) -> None:
        if frame.step <= self._step:
            raise CodecError(f"step {frame.step} came after step {self._step}")
        self._step = frame.step
        frame.step += self._own_frames
        if any(frame.finish):
            for key, finish in zip(frame.key, frame.finish, strict=True):
                if finish:
                    self._open.pop(key, None)
        self.outbox.add(frame)

    def _watch(self) -> None:
        if self._hang_s:
            self._pulse = Pulse(
                self._clock, lambda: self._link.send(seal(Kind.PING)), most_s=self._hang_s
            )
            self._spawn(self._await_silence(self._pulse))

    async def _await_stall(self) -> None:
        found = await stalled(self._clock, self.process.worked, least_s=self._hang_s)
        self._die(found, Finish.ERROR)

    async def _await_silence(self, pulse: Pulse) -> None:
        await pulse.lost()
        self._die(f"it has not made a turn for {self._hang_s:g} s", Finish.ERROR)

    def _ended(self, wrong: CodecError | None) -> None:
        """The socket is closed, or what came on it is no message."""
        if wrong is not None:
            self._die(f"it sent what cannot be: {wrong}", Finish.ERROR)
        elif self._told_over:
            self._die(self._failure, Finish.ERROR)
        else:
            self._die("its process has gone", Finish.ERROR)

    def _die(self, failure: str | None, finish: Finish) -> None:
        """Once: the engine is over, and so is all that is open."""
        if self.over.is_set():
            return
        self.over.set()
        self._failure = failure
        if not self._told_over:
            self.process.kill()  # before it sees the end of the socket and leaves as if of itself
        self._link.close()
        if self._info is not None:
            self._info.healthy = False
        if not self._ready.done():
            self._ready.set_exception(_Lost(failure))
        self._end_keys(list(self._open), finish)
        self.outbox.close()
        for task in self._tasks:
            task.cancel()
        if failure is not None and finish is Finish.ERROR and self._info is not None:
            log.error("the engine is dead: %s", failure)
            self._spawn(self._tell_end(self.process))

    async def _tell_end(self, process: EngineProcess) -> None:
        await process.reaped()
        log.error("the engine's process %d %s", process.pid, process.story())

    def _end_keys(
        self, keys: Sequence[int], finish: Finish, error: EngineError | None = None
    ) -> None:
        """A frame of our own that ends these keys."""
        if not keys:
            return
        if finish is Finish.ERROR and error is None:
            error = self._refusal()
        self._own_frames += 1
        frame = FrameBuilder(self._step + self._own_frames)
        for key in keys:
            self._open.pop(key, None)
            frame.row(key, finish=finish, error=error)
        self.outbox.add(frame.build(time.monotonic_ns(), Gauges()))

    def _refusal(self) -> EngineError:
        if self._failure is None:
            return EngineError(code="engine_overloaded", message="the engine is stopping")
        return EngineError(code="engine_failed", message=f"the engine is dead: {self._failure}")

    def _spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Lost(Exception):
    """The process ended before it was ready."""
