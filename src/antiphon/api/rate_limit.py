"""How many generation requests each API key may make: a bucket of tokens for each.

A bucket holds a minute's worth, is full at first, and fills evenly. Refused requests take nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from quart import Quart, g

from antiphon.api.admission import asks_to_generate
from antiphon.api.service import Service
from antiphon.errors import RateLimited

MINUTE_S = 60.0


class TokenBuckets:
    """One bucket of ``per_minute`` requests for each key; ``clock`` gives seconds."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._size = float(per_minute)
        self._rate = per_minute / MINUTE_S
        self._clock = clock
        self._levels: dict[Hashable, tuple[float, float]] = {}
        """What a bucket held, and when."""

    def take(self, key: Hashable) -> float:
        """Take one request out of the key's bucket; 0, or the seconds until there is one."""
        now = self._clock()
        level, then = self._levels.get(key, (self._size, now))
        level = min(self._size, level + (now - then) * self._rate)
        granted = level >= 1.0
        self._levels[key] = (level - granted, now)
        return 0.0 if granted else (1.0 - level) / self._rate


def install(app: Quart, service: Service) -> None:
    """Count each generation request once its key is known, before its body is read."""
    if not service.rate_limit:
        return
    buckets = TokenBuckets(service.rate_limit, service.monotonic_s)

    @app.before_request
    async def check_rate() -> None:
        if asks_to_generate() and (wait_s := buckets.take(g.key)):
            raise RateLimited(
                f"The limit is {service.rate_limit} requests per minute. Try again later.",
                wait_s=wait_s,
            )
