"""All connections of a server, and how they end when it does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGISendCallable,
    LifespanState,
    Scope,
)

from antiphon.transport.connection import Connection
from antiphon.transport.drain import Drain, Phase
from antiphon.transport.ending import Ending
from antiphon.transport.http2 import AntiphonH2
from antiphon.transport.settings import HostConfig

BYE_S = 0.25
"""What a connection gets to write its last bytes when its time is over."""
UNWIND_S = 0.35
"""What its handlers get to end after that."""

log = logging.getLogger("antiphon.transport")


class Host:
    """The live connections of one server."""

    def __init__(self, app: AppWrapper, config: HostConfig, state: LifespanState) -> None:
        self._app = app
        self._config = config
        self._state = state
        self._context = WorkerContext(None)
        self._live: dict[asyncio.Task[None], Connection] = {}
        self._calls: set[object] = set()
        """Of the application, that have not ended."""
        self._changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its acceptance to its end."""
        connection = Connection(
            self._call,
            asyncio.get_running_loop(),
            self._config,
            self._context,
            self._state,
            reader,
            writer,
        )
        task = asyncio.ensure_future(connection.run())
        self._live[task] = connection
        try:
            await task
        finally:
            del self._live[task]
            self._changed.set()

    async def end(
        self,
        ending: Ending,
        grace_s: float,
        *,
        close_listeners: Callable[[], None],
        drain: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """End every connection, within ``grace_s`` seconds and two more; see ``Drain``.

        Where there is a ``drain`` it takes nothing new and returns when all that it makes has been
        made; cancelled, it ends that at once. It runs while connections are still taken and
        served. Nothing is waited for once the end is forced.
        """
        clock = asyncio.get_running_loop().time
        phases = Drain(grace_s, heard=drain is not None)
        phases.ask(clock())
        draining = None if drain is None else asyncio.ensure_future(_logged(drain()))
        await asyncio.sleep(0)  # After that it begins nothing new.
        begun = set(self._calls)
        hurrying = asyncio.ensure_future(self._when(ending.forced, lambda: phases.ask(clock())))
        if draining is not None:
            draining.add_done_callback(lambda _: self._changed.set())
        try:
            while True:
                self._changed.clear()
                answers = len(begun & self._calls) + (draining is not None and not draining.done())
                phases.look(clock(), answers=answers, connections=len(self._live))
                if draining is not None and phases.phase >= Phase.CUT:
                    draining.cancel()
                if phases.phase >= Phase.CLOSING:
                    close_listeners()
                    await self._context.terminated.set()
                if phases.phase is Phase.DONE:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), max(0, phases.until - clock()))
        finally:
            close_listeners()
            others = [task for task in (draining, hurrying) if task is not None]
            for task in others:
                task.cancel()
            await self._cut()
            await asyncio.gather(*others, return_exceptions=True)

    async def _call(
        self,
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        """The application, which is counted while it answers: until the client has its answer."""
        call = object()
        self._calls.add(call)
        try:
            await self._app(scope, receive, send, sync_spawn, call_soon)
        finally:
            self._calls.discard(call)
            self._changed.set()

    async def _when(self, event: asyncio.Event, act: Callable[[], None]) -> None:
        await event.wait()
        act()
        self._changed.set()

    async def _cut(self) -> None:
        """Reset what is open, and end every connection and all of its handlers."""
        await self._context.terminated.set()
        byes = [asyncio.ensure_future(_logged(_say_last(each))) for each in self._live.values()]
        await self._gone(BYE_S)
        for connection in self._live.values():
            connection.abort()
        await self._gone(UNWIND_S)
        for task in [*byes, *self._live]:
            task.cancel()
        await self._gone(UNWIND_S)
        await asyncio.gather(*byes, return_exceptions=True)
        if self._live:
            log.error("%d connections have handlers that do not end", len(self._live))

    async def _gone(self, seconds: float) -> None:
        """Wait until no connection is left, at most ``seconds``."""
        if self._live:
            await asyncio.wait(set(self._live), timeout=seconds)


async def _say_last(connection: Connection) -> None:
    """Reset the streams whose answers are not complete, so that nobody takes them to be; then bye.

    An HTTP/1.1 answer is seen to be cut by what it lacks.
    """
    protocol = connection.protocol.protocol
    if isinstance(protocol, AntiphonH2):
        for stream_id in list(protocol.streams):
            with contextlib.suppress(ProtocolError):
                protocol.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
    await connection.say_goodbye()


async def _logged(work: Awaitable[object]) -> None:
    """Await ``work``. Its failure ends no server in another way."""
    try:
        await work
    except Exception:
        log.exception("a failure at the end of the server")
