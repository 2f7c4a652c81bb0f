"""Stop strings over a stream of text.

The match that ends first wins; of two that end together, the one that begins first. What may still
become a match (the longest suffix that begins a stop string) is held, released on a mismatch and at
the end. All positions are characters from the start of the stream, so no chunking can matter.

Cost and memory grow with the text and with what of a stop string was met in it, never with their
product: Knuth, Morris and Pratt, Fast pattern matching in strings, 1977.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Needle:
    """One stop string, and how much of it the text so far ends with (``matched``)."""

    __slots__ = ("_borders", "matched", "text")

    def __init__(self, text: str) -> None:
        if not text:
            raise ValueError("a stop string cannot be empty")
        self.text = text
        self.matched = 0
        self._borders = [0, 0]

    def feed(self, text: str) -> int:
        """Where in ``text`` the first match ends, -1 if none does."""
        needle, matched, at = self.text, self.matched, 0
        while at < len(text):
            if matched == 0:
                at = text.find(needle[0], at)
                if at < 0:
                    break
            while matched and needle[matched] != text[at]:
                matched = self._border(matched)
            matched += needle[matched] == text[at]
            at += 1
            if matched == len(needle):
                return at
        self.matched = matched
        return -1

    def _border(self, length: int) -> int:
        """The length of the longest prefix of the needle, shorter than ``length``, that its first
        ``length`` characters end with."""
        needle, borders = self.text, self._borders
        while len(borders) <= length:
            border, char = borders[-1], needle[len(borders) - 1]
            while border and needle[border] != char:
                border = borders[border]
            borders.append(border + (needle[border] == char))
        return borders[length]


class StopMatcher:
    """``end``: characters taken so far; ``released``: given out so far.

    ``hit``: the matched stop string, if any, and ``hit_end`` where the match ended, else -1. With
    ``include`` the match itself is given out too, and then nothing needs to be held.
    """

    __slots__ = ("_include", "_live", "_needles", "_starts", "end", "hit", "hit_end", "released")

    def __init__(self, stops: Sequence[str], *, include: bool) -> None:
        self._needles = [Needle(stop) for stop in stops]
        self._starts = tuple({stop[0] for stop in stops})
        self._include = include
        self._live = ""
        """The end of the text so far that may become a match."""
        self.end = 0
        self.released = 0
        self.hit: str | None = None
        self.hit_end = -1

    @property
    def looks(self) -> bool:
        """There are stop strings to look for."""
        return bool(self._needles)

    def feed(self, text: str) -> str:
        """The text that is released by ``text``; nothing any more after a hit."""
        if self.hit is not None or not text:
            return ""
        if not self._live and not any(start in text for start in self._starts):
            self.end += len(text)
            self.released = self.end
            return text
        window = self._live + text
        origin, self.end = self.end - len(self._live), self.end + len(text)
        ends = [(needle.feed(text), -len(needle.text), needle.text) for needle in self._needles]
        hits = [found for found in ends if found[0] >= 0]
        if hits:
            end, _, self.hit = min(hits)
            border = len(self._live) + end
            self.hit_end = origin + border
            if not self._include:
                border -= len(self.hit)
            self._live = ""
        else:
            held = max(needle.matched for needle in self._needles)
            border = len(window) if self._include else len(window) - held
            self._live = window[len(window) - held :]
        visible = window[self.released - origin : border]
        self.released = origin + border
        return visible

    def flush(self) -> str:
        """The text that was held: no match can follow any more."""
        held = self._live[len(self._live) - (self.end - self.released) :]
        self._live = ""
        for needle in self._needles:
            needle.matched = 0
        self.released += len(held)
        return held
