"""What an application has taken of the bodies of one HTTP/2 connection, and what it holds of them.

A client gets its windows back for what was taken, and not for what waits: so no more than a window
waits, and the reading of the connection never does. An application keeps what it has taken of a
body until that is complete. So there is a limit to that, too: above it only the oldest body goes
on, and the others wait until it is complete. The window of the connection is given back all the
same, or the oldest could not. What still comes is at most a window of each stream; where these
are too many, the latest is refused.
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

MUCH, MOST = 8, 16
"""Windows of a connection that all unfinished bodies but the oldest may hold before they wait, and
before the latest is refused."""


class Uptake:
    """Bytes that wait or are held, by stream. ``to_all(size)`` opens the window of the connection,
    which is of ``window`` bytes, and ``to_one(size, stream_id)`` that of a stream."""

    def __init__(
        self, to_all: Callable[[int], None], to_one: Callable[[int, int], None], window: int
    ) -> None:
        self._to_all = to_all
        self._to_one = to_one
        self._much, self._most = MUCH * window, MOST * window
        self._waiting: dict[int, int] = {}
        self._held: dict[int, int] = {}
        """What has come of bodies that are not complete, the oldest first."""
        self._total = 0
        self._withheld: dict[int, int] = {}
        """Of the windows of streams."""

    def came(self, stream_id: int, size: int, data: int) -> None:
        """A frame of ``size`` bytes, of which ``data`` wait for the application."""
        if size > data:  # Padding is taken by nobody.
            self._give(size - data, stream_id)
        self._waiting[stream_id] = self._waiting.get(stream_id, 0) + data
        self._held[stream_id] = self._held.get(stream_id, 0) + data
        self._total += data

    def taken(self, stream_id: int, size: int) -> None:
        """The application has ``size`` bytes. After the end of its stream that changes nothing."""
        waiting = self._waiting.get(stream_id)
        if waiting is not None:
            self._waiting[stream_id] = waiting - size
            self._to_all(size)
            if self._goes_on(stream_id):
                self._to_one(size, stream_id)
            else:
                self._withheld[stream_id] = self._withheld.get(stream_id, 0) + size

    def complete(self, stream_id: int) -> None:
        """All of its body has come."""
        self._total -= self._held.pop(stream_id, 0)
        if self._withheld:
            for each in [each for each in self._withheld if self._goes_on(each)]:
                self._to_one(self._withheld.pop(each), each)

    def end(self, stream_id: int) -> None:
        """Nobody takes what waits. The others of the connection get its window back."""
        if waiting := self._waiting.pop(stream_id, 0):
            self._give(waiting, stream_id)
        self.complete(stream_id)

    def too_many(self) -> int | None:
        """The stream that has to go because too much is held, if one has."""
        return next(reversed(self._held)) if self._held_by_others() > self._most else None

    def _give(self, size: int, stream_id: int) -> None:
        self._to_all(size)
        self._to_one(size, stream_id)

    def _goes_on(self, stream_id: int) -> bool:
        if self._held_by_others() <= self._much or stream_id not in self._held:
            return True
        return stream_id == next(iter(self._held))

    def _held_by_others(self) -> int:
        """By all but the oldest."""
        return self._total - self._held[next(iter(self._held))] if self._held else 0


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
