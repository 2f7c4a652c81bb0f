"""The torch engine as the event loop sees it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVarTuple, Unpack

from antiphon.engines.outbox import Outbox
from antiphon.engines.port import EngineInfo, EngineRequest, EngineStartError, StepFrame
from antiphon.engines.torch.inbox import Abort, AbortAll, Drain, Inbox, Submit
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.start import start_loop

if TYPE_CHECKING:
    from antiphon.engines.torch.loop import EngineLoop

Ts = TypeVarTuple("Ts")


class TorchEngine:
    """A model on CPU or CUDA behind the engine port; its loop is one thread of this process."""

    def __init__(self, options: EngineOptions) -> None:
        """Nothing is loaded yet."""
        self.options = options
        self._inbox = Inbox()
        self._outbox: Outbox | None = None
        self._engine: EngineLoop | None = None
        self._exited = asyncio.Event()
        self._consumed = False

    async def start(self) -> EngineInfo:
        """Load in the engine's own thread, which then runs the loop."""
        if self._outbox is not None:
            raise RuntimeError("the engine was started before")
        self._outbox = Outbox()
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[EngineLoop] = loop.create_future()
        # A daemon, so that a process that leaves without stop() is not held back.
        thread = threading.Thread(
            target=self._main, args=(loop, self._outbox, ready), name="torch-engine", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as failure:  # the system has no thread left
            self._give_up(
                self._outbox, ready, EngineStartError(f"no thread for the engine: {failure}")
            )
        return (await ready).info

    def submit(self, request: EngineRequest) -> None:
        """Hand the request to the loop, or refuse it if the loop is over."""
        self._inbox.put(Submit(request))
        if self._exited.is_set() and self._engine is not None:
            self._engine.close()

    def abort(self, keys: Sequence[int]) -> None:
        """Hand the keys to the loop; it ends them before its next step."""
        self._inbox.put(Abort(tuple(keys)))

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames, in order, until the engine has stopped or failed."""
        if self._outbox is None:
            raise RuntimeError("the engine was not started")
        if self._consumed:
            raise RuntimeError("the frames of an engine have one consumer")
        self._consumed = True
        return self._outbox.frames()

    async def stop(self, grace_s: float) -> None:
        """Refuse new requests, wait for the open ones, end what is open after ``grace_s``."""
        if self._outbox is None:
            return
        self._inbox.put(Drain())
        try:
            async with asyncio.timeout(grace_s):
                await self._exited.wait()
        except TimeoutError:
            self._inbox.put(AbortAll())
            await self._exited.wait()

    def _main(
        self,
        loop: asyncio.AbstractEventLoop,
        outbox: Outbox,
        ready: asyncio.Future[EngineLoop],
    ) -> None:
        """The thread: load, report, run, report. Whatever fails in it, the event loop is told."""
        try:
            engine = start_loop(self.options, self._inbox, outbox.put)
        except EngineStartError as failure:
            _call(loop, self._give_up, outbox, ready, failure)
            return
        _call(loop, self._report, ready, engine)
        try:
            engine.run()
        finally:
            _call(loop, self._finish, engine, outbox)

    def _report(self, ready: asyncio.Future[EngineLoop], engine: EngineLoop) -> None:
        """On the event loop: loaded."""
        self._engine = engine
        if not ready.done():  # start() may have been cancelled
            ready.set_result(engine)

    def _give_up(
        self, outbox: Outbox, ready: asyncio.Future[EngineLoop], failure: EngineStartError
    ) -> None:
        """On the event loop: not loaded."""
        outbox.close()
        self._exited.set()
        if not ready.done():
            ready.set_exception(failure)

    def _finish(self, engine: EngineLoop, outbox: Outbox) -> None:
        """On the event loop, after the thread's last frame: nothing can be submitted meanwhile."""
        engine.close()
        engine.info.healthy = False
        outbox.close()
        self._exited.set()


def _call(
    loop: asyncio.AbstractEventLoop, function: Callable[[Unpack[Ts]], None], *args: *Ts
) -> None:
    """Run ``function`` on the event loop, if it is still there."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
