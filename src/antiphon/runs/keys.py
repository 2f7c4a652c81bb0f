"""The names of engine requests: numbers of 32 bits, each used by one open request at most."""

from __future__ import annotations

from collections.abc import Container
from itertools import count

KEYS = 2**32


class Keys:
    """Each call gives the next number that is not ``taken``."""

    def __init__(self, taken: Container[int]) -> None:
        self._taken = taken
        self._next = count(1)

    def __call__(self) -> int:
        while (key := next(self._next) % KEYS) in self._taken:
            pass
        return key
