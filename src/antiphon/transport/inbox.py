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
    HTTPDisconnectEvent,
    HTTPRequestEvent,
    Scope,
)

from antiphon.transport.settings import READ_AHEAD

DISCONNECTS = frozenset({"http.disconnect", "websocket.disconnect"})


OVERHEAD = 256
"""Bytes that a message counts besides its own."""
UNTAKEN_S = 30.0
"""What an application gets to take a piece of a body for which there is no room, …"""
ANSWERING_S = 5.0
"""… and one that answers already: it may not want it at all."""
LOST: HTTPDisconnectEvent = {"type": "http.disconnect"}


class Inbox:
    """Messages until the client or the application has gone.

    Pieces of a body are put together while they wait: very many tiny ones take what their bytes
    take. ``room`` is how many bytes may wait before ``put`` does; without one it never waits, which
    is right where the client is held by its windows.
    """

    def __init__(self, room: int | None) -> None:
        self._room = room
        self._size = 0
        self._messages: deque[ASGIReceiveEvent] = deque()
        self._body = bytearray()
        """Of the last message, if that is a piece of a body and not the last one."""
        self._is_open = False
        """Whether it is."""
        self._closed = False
        self._is_answering = False
        self._changed = asyncio.Event()

    async def get(self) -> ASGIReceiveEvent:
        """The next message. That the client has gone is told as often as it is asked."""
        while not self._messages:
            await self._changed.wait()
        if self._messages[0]["type"] in DISCONNECTS:
            return self._messages[0]
        message = self._messages.popleft()
        if not self._messages and self._is_open:
            message = _piece(bytes(self._body))
            self._body = bytearray()
            self._is_open = False
        self._size -= _size(message)
        self._tell()
        return message

    async def put(self, message: ASGIReceiveEvent) -> None:
        """Add ``message`` once there is room, or drop it when nobody will take it.

        That the client has gone needs no room: nothing else is of interest then. It is behind the
        body that it is seen to go, so one that nobody takes is lost in the end.
        """
        if message["type"] in DISCONNECTS:
            self._messages.clear()
            self._messages.append(message)
            self._body = bytearray()
            self._is_open = False
            self.close()
            return
        size = _size(message)
        while self._room is not None and self._size and self._size + size > self._room:
            if self._closed:
                break
            patience = ANSWERING_S if self._is_answering else UNTAKEN_S
            try:
                await asyncio.wait_for(self._changed.wait(), patience)
            except TimeoutError:
                if message["type"] == "http.request":
                    self._lose()
        if not self._closed:
            self._add(message, size)
            self._tell()

    def answering(self) -> None:
        """The application has begun its answer."""
        self._is_answering = True
        self._tell()

    def _lose(self) -> None:
        """The rest of the body is dropped. Whoever comes to that has no whole body."""
        self._seal()
        self._messages.append(LOST)
        self.close()

    def close(self) -> None:
        """Nothing is taken any more."""
        self._closed = True
        self._tell()

    def _add(self, message: ASGIReceiveEvent, size: int) -> None:
        if message["type"] == "http.request" and message["more_body"]:
            if self._is_open:
                self._size += len(message["body"])
                self._body += message["body"]
                return
            self._body += message["body"]
            self._messages.append(_piece(b""))
            self._is_open = True
        else:
            self._seal()
            self._messages.append(message)
        self._size += size

    def _seal(self) -> None:
        """Nothing is added to the piece that waits."""
        if self._is_open:
            self._messages[-1] = _piece(bytes(self._body))
            self._body = bytearray()
            self._is_open = False

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _piece(body: bytes) -> HTTPRequestEvent:
    return {"type": "http.request", "body": body, "more_body": True}


def _size(message: ASGIReceiveEvent) -> int:
    match message["type"]:
        case "http.request":
            return OVERHEAD + len(message["body"])
        case "websocket.receive":
            return OVERHEAD + len(message["bytes"] or b"") + len(message["text"] or "")
        case _:
            return OVERHEAD


class Calls(TaskGroup):
    """The tasks of one connection, whose applications have inboxes."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start ``app``; the result puts messages into its inbox.

        That of Hypercorn puts them into a queue which waits for who has gone.
        """
        inbox = Inbox(None if scope.get("http_version") == "2" else READ_AHEAD)

        async def call(
            scope: Scope,
            receive: ASGIReceiveCallable,
            send: ASGISendCallable,
            sync_spawn: Callable[..., Any],
            call_soon: Callable[..., Any],
        ) -> None:
            del receive  # The inbox stands in its place.

            async def answer(message: ASGISendEvent) -> None:
                if message["type"] == "http.response.start":
                    inbox.answering()
                await send(message)

            try:
                await app(scope, inbox.get, answer, sync_spawn, call_soon)
            finally:
                inbox.close()

        await super().spawn_app(call, config, scope, send)
        return inbox.put
