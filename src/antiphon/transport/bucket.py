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

    def take(self, now: float, price: float = 1) -> bool:
        """Take ``price``; False, and nothing is taken, when there is not so much."""
        filled = min(self._burst, self._left + (now - self._then) * self._rate)
        self._left = max(self._left, filled)  # What was given stays, above the burst too.
        self._then = now
        if self._left < price:
            return False
        self._left -= price
        return True

    def give(self, amount: float) -> None:
        """Put in what has been earned, up to ten times the burst."""
        self._left = max(self._left, min(self._left + amount, 10 * self._burst))
