"""All connections of a server, and how they end when it does."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, LifespanState

from antiphon.transport.connection import Connection
from antiphon.transport.settings import HostConfig

FLUSH_S = 0.5
"""What a connection gets to write its last bytes when its time is over."""
UNWIND_S = 2.0
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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its acceptance to its end."""
        connection = Connection(
            self._app,
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

    async def close(self, grace_s: float, forced: asyncio.Event) -> None:
        """End every connection: idle ones now, the others after ``grace_s`` or when ``forced``."""
        await self._context.terminated.set()
        await self._gone(grace_s, forced)
        byes = [asyncio.ensure_future(each.say_goodbye()) for each in self._live.values()]
        await self._gone(FLUSH_S)
        for connection in self._live.values():
            connection.abort()
        await self._gone(UNWIND_S)
        for task in [*byes, *self._live]:
            task.cancel()
        await self._gone(UNWIND_S)
        await asyncio.gather(*byes, return_exceptions=True)
        if self._live:
            log.error("%d connections have handlers that do not end", len(self._live))

    async def _gone(self, seconds: float, forced: asyncio.Event | None = None) -> None:
        """Wait until no connection is left, at most ``seconds`` or until ``forced``."""
        if not self._live:
            return
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(asyncio.wait(set(self._live)))}
        if forced is not None:
            waits.add(asyncio.ensure_future(forced.wait()))
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
