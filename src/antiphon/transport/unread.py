"""Request bodies that still arrive after their answer: they are read and dropped, up to a limit.

Many clients send the whole body before they read, or lose an answer when the connection is closed
or the stream is reset under them. So the early answer is followed by neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from hypercorn.events import Event

from antiphon.transport.settings import UNREAD_BODY

UNREAD_TOTAL = 4 * UNREAD_BODY
"""Bytes of such bodies that are open on one HTTP/2 connection at the same time."""
QUIET_S = 10.0
"""What a client gets between two pieces of such a body, …"""
DROPPING_S = 60.0
"""… and for all of it, as for a body that is read. Less than an idle connection gets."""


@dataclass(frozen=True)
class Dropping(Event):
    """A piece of a body has been dropped, or the first is expected.

    ``last``: nothing more will be sent on this connection.
    """

    last: bool


@dataclass(frozen=True)
class SentAway(Event):
    """The client has been told that the connection ends, and why; nothing else is said."""


@dataclass
class _Body:
    size: int
    """Bytes dropped so far."""
    moved: bool
    """Whether some came since the timer was set."""
    until: float
    """When it has to be over, by the loop's clock."""
    timer: asyncio.TimerHandle


class UnreadStreams:
    """The answered streams of one HTTP/2 connection whose bodies still arrive.

    ``give_up`` is called with a stream whose body is too long, takes too long or comes to a halt;
    it is forgotten by then.
    """

    def __init__(self, give_up: Callable[[int], None]) -> None:
        self._give_up = give_up
        self._bodies: dict[int, _Body] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def begin(self, stream_id: int) -> None:
        """The stream has been answered, and its body has not ended."""
        until = asyncio.get_running_loop().time() + DROPPING_S
        timer = self._timer(stream_id, until)
        self._bodies[stream_id] = _Body(size=0, moved=False, until=until, timer=timer)

    def drop(self, stream_id: int, size: int) -> None:
        """``size`` bytes (with their padding) have come, if the stream is one of these."""
        body = self._bodies.get(stream_id)
        if body is None:
            return
        body.size += size
        self._total += size
        body.moved = True
        if body.size > UNREAD_BODY or self._total > UNREAD_TOTAL:
            self._lose(stream_id)

    def lose_oldest(self) -> None:
        """Make room for another stream."""
        self._lose(next(iter(self._bodies)))

    def lose(self, stream_id: int) -> None:
        """Wait no longer for the body of this stream, if it is one of these."""
        if stream_id in self._bodies:
            self._lose(stream_id)

    def end(self, stream_id: int) -> bool:
        """The body has ended, or its stream has; False if it was none of these."""
        body = self._bodies.pop(stream_id, None)
        if body is not None:
            self._total -= body.size
            body.timer.cancel()
        return body is not None

    def clear(self) -> None:
        """The connection is gone."""
        for stream_id in list(self._bodies):
            self.end(stream_id)

    def _lose(self, stream_id: int) -> None:
        self.end(stream_id)
        self._give_up(stream_id)

    def _timer(self, stream_id: int, until: float) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_at(min(loop.time() + QUIET_S, until), self._look, stream_id)

    def _look(self, stream_id: int) -> None:
        body = self._bodies[stream_id]
        if body.moved and asyncio.get_running_loop().time() < body.until:
            body.moved, body.timer = False, self._timer(stream_id, body.until)
        else:
            self._lose(stream_id)
