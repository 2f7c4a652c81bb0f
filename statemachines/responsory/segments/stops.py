"""Stop strings over a stream of text.

The match that ends first wins; of two that end together, the one that begins first. What may still
become a match (the longest suffix that begins a stop string) is held, released on a mismatch and at
the end. All positions are characters from the start of the stream, so no chunking can matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopMatcher:
    """``end``: characters taken so far; ``released``: given out so far.

    ``hit``: the matched stop string, if any, and ``hit_end`` where the match ended, else -1. With
    ``include`` the match itself is given out too, and then nothing needs to be held.
    """

    __slots__ = ("_include", "_live", "_longest", "_prefixes", "_starts", "end", "hit", "hit_end",
                 "released", "stops")  # fmt: skip

    def __init__(self, stops: Sequence[str], *, include: bool) -> None:
        if not all(stops):
            raise ValueError("a stop string cannot be empty")
        self.stops = tuple(stops)
        self._include = include
        self._starts = tuple({stop[0] for stop in stops})
        self._prefixes = frozenset(stop[:k] for stop in stops for k in range(1, len(stop)))
        self._longest = max(map(len, self._prefixes), default=0)
        self._live = ""
        self.end = 0
        self.released = 0
        self.hit: str | None = None
        self.hit_end = -1

    def feed(self, text: str) -> str:
        """The text that is released by ``text``; nothing any more after a hit."""
        if self.hit_end >= 0 or not text:
            return ""
        if not self._live and not any(start in text for start in self._starts):
            self.end += len(text)
            self.released = self.end
            return text
        origin = self.end - len(self._live)
        window = self._live + text
        self.end += len(text)
        found = [(window.find(stop), stop) for stop in self.stops]
        hits = [(start + len(stop), start, stop) for start, stop in found if start >= 0]
        if hits:
            end, start, self.hit = min(hits)
            self.hit_end = origin + end
            self._live = ""
            border = end if self._include else start
        else:
            self._live = self._live_suffix(window)
            border = len(window) if self._include else len(window) - len(self._live)
        visible = window[self.released - origin : border]
        self.released = origin + border
        return visible

    def _live_suffix(self, window: str) -> str:
        for length in range(min(self._longest, len(window)), 0, -1):
            if window[-length:] in self._prefixes:
                return window[-length:]
        return ""

    def flush(self) -> str:
        """The text that was held: no match can follow any more."""
        held = self._live[len(self._live) - (self.end - self.released) :]
        self._live = ""
        self.released += len(held)
        return held
