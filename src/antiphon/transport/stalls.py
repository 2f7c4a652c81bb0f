"""Who takes nothing for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Stalls:
    """Watches one reader while something waits for it.

    ``taken`` tells how many bytes it has taken so far; ``stalled`` is called once it has taken none
    of what waits for ``seconds``.
    """

    __slots__ = ("_seconds", "_stalled", "_taken", "_timer")

    def __init__(
        self, seconds: float, taken: Callable[[], int], stalled: Callable[[], None]
    ) -> None:
        self._seconds = seconds
        self._taken = taken
        self._stalled = stalled
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Something waits; idempotent."""
        if self._timer is None:
            self._arm()

    def end(self) -> None:
        """Nothing waits any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._look, self._taken())

    def _look(self, taken_before: int) -> None:
        if self._taken() != taken_before:
            self._arm()
        else:
            self._timer = None
            self._stalled()
