"""A token bucket: so many at once, and so many a second after that."""

from __future__ import annotations


class Bucket:
    """Full at first. Times are in seconds, by a clock that never goes back."""

    __slots__ = ("_burst", "_left", "_rate", "_then")

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left = burst
        self._then = now

    def take(self, now: float) -> bool:
        """Take one; False, and nothing is taken, when there is none."""
        self._left = min(self._burst, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
