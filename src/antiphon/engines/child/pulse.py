"""Whether an engine still turns: it is asked from time to time, and must answer in its time.

A process that is stopped, or a thread that waits for ever, closes no socket.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel

from antiphon.engines.clock import Clock

SECOND_NS = 1_000_000_000


class Pulse:
    """Calls ``ping`` and waits for ``beat``; at most one question is open."""

    def __init__(self, clock: Clock, ping: Callable[[], None], *, most_s: float) -> None:
        """``most_s``: seconds until an answer, and the longest that a step may take."""
        self._clock = clock
        self._ping = ping
        self._most_ns = int(most_s * SECOND_NS)
        self._heard = anyio.Event()

    def beat(self) -> None:
        """The answer to the last ping."""
        self._heard.set()

    async def lost(self) -> None:
        """Return once a question has had no answer."""
        never = anyio.Event()
        while True:
            self._heard = anyio.Event()
            self._ping()
            await self._clock.wait(self._heard, self._clock.now_ns() + self._most_ns)
            # After a pause of our own the answer may be there, and only not have been read.
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            if not self._heard.is_set():
                return
            await self._clock.wait(never, self._clock.now_ns() + self._most_ns // 4)
