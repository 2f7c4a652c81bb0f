"""Compiled forms that are kept: so many, and so much memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from antiphon.engines.port import GrammarSpec

T = TypeVar("T")


class Kept(Generic[T]):
    """Forms and what was made of them, at most ``most`` and at most ``most_bytes`` of memory.

    Where there are too many the least used goes; where they take too much, the largest.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._made: OrderedDict[GrammarSpec, tuple[T, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._made)

    def get(self, form: GrammarSpec) -> T | None:
        """What was made of the form, which is used."""
        found = self._made.get(form)
        if found is None:
            return None
        self._made.move_to_end(form)
        return found[0]

    def put(self, form: GrammarSpec, made: T, size: int) -> None:
        """Keep it, if it is not itself the one that is too large. ``size`` is in bytes."""
        self._drop(form)
        self._made[form] = made, size
        self.bytes += size
        if len(self._made) > self._most:
            self._drop(next(iter(self._made)))
        while self.bytes > self._most_bytes:
            self._drop(max(self._made, key=lambda one: self._made[one][1]))

    def _drop(self, form: GrammarSpec) -> None:
        _, size = self._made.pop(form, (None, 0))
        self.bytes -= size
