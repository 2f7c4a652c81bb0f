"""What an application has taken of the bodies of one HTTP/2 connection.

A client gets its windows back for what was taken, and not for what waits: so no more than a window
waits, and the reading of the connection never does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    Scope,
)


class Uptake:
    """Bytes that wait, by stream. ``acknowledge(size, stream_id)`` gives the window back."""

    def __init__(self, acknowledge: Callable[[int, int], None]) -> None:
        self._acknowledge = acknowledge
        self._waiting: dict[int, int] = {}

    def came(self, stream_id: int, size: int, data: int) -> None:
        """A frame of ``size`` bytes, of which ``data`` wait for the application."""
        if size > data:  # Padding is taken by nobody.
            self._acknowledge(size - data, stream_id)
        self._waiting[stream_id] = self._waiting.get(stream_id, 0) + data

    def taken(self, stream_id: int, size: int) -> None:
        """The application has ``size`` bytes. After the end of its stream that changes nothing."""
        waiting = self._waiting.get(stream_id)
        if waiting is not None:
            self._waiting[stream_id] = waiting - size
            self._acknowledge(size, stream_id)

    def end(self, stream_id: int) -> None:
        """Nobody takes what waits. The others of the connection get its window back."""
        if waiting := self._waiting.pop(stream_id, 0):
            self._acknowledge(waiting, stream_id)


def taking(app: AppWrapper, taken: Callable[[int], Awaitable[None]]) -> AppWrapper:
    """``app`` for one request. ``taken`` is awaited with the bytes of each piece of the body."""

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        async def receive_and_tell() -> ASGIReceiveEvent:
            message = await receive()
            if message["type"] == "http.request" and (size := len(message["body"])):
                await taken(size)
            return message

        await app(scope, receive_and_tell, send, sync_spawn, call_soon)

    return call
