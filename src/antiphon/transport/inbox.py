"""What a connection has for the application of one request, and who waits for it.

Hypercorn's queue waits for room even when the application has ended or only answers; that is where
the reading of a whole connection came to a halt.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.config import Config
from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)

DISCONNECTS = frozenset({"http.disconnect", "websocket.disconnect"})


class Inbox:
    """At most ``size`` messages, until the client or the application has gone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._messages: deque[ASGIReceiveEvent] = deque()
        self._closed = False
        self._changed = asyncio.Event()

    async def get(self) -> ASGIReceiveEvent:
        """The next message. That the client has gone is told as often as it is asked."""
        while not self._messages:
            await self._changed.wait()
        if self._messages[0]["type"] in DISCONNECTS:
            return self._messages[0]
        self._tell()
        return self._messages.popleft()

    async def put(self, message: ASGIReceiveEvent) -> None:
        """Add ``message`` once there is room, or drop it when nobody will take it.

        That the client has gone needs no room: nothing else is of interest then.
        """
        if message["type"] in DISCONNECTS:
            self._messages.clear()
            self._messages.append(message)
            self.close()
            return
        while len(self._messages) >= self._size and not self._closed:
            await self._changed.wait()
        if not self._closed:
            self._messages.append(message)
            self._tell()

    def close(self) -> None:
        """Nothing is taken any more."""
        self._closed = True
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Calls(TaskGroup):
    """The tasks of one connection, whose applications have inboxes."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start ``app``; the result puts messages into its inbox."""
        inbox = Inbox(config.max_app_queue_size)

        async def call(
            scope: Scope,
            receive: ASGIReceiveCallable,
            send: ASGISendCallable,
            sync_spawn: Callable[..., Any],
            call_soon: Callable[..., Any],
        ) -> None:
            del receive  # The inbox stands in its place.
            try:
                await app(scope, inbox.get, send, sync_spawn, call_soon)
            finally:
                inbox.close()

        await super().spawn_app(call, config, scope, send)
        return inbox.put
