"""A timer for what may not last too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls ``missed`` when something has lasted for ``seconds`` without an end."""

    def __init__(self, seconds: float, missed: Callable[[], None]) -> None:
        self._seconds = seconds
        self._missed = missed
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, lasts: bool) -> None:
        """Whether it lasts now. The time runs from the first call that says so, and from the first
        one after it was missed."""
        if lasts and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._miss)
        elif not lasts and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _miss(self) -> None:
        self._timer = None
        self._missed()
