"""Raw text cut into regions: markers, and the text of each mode between them.

What may still become a marker is held: the longest suffix that begins one, and the white space
before it, which belongs to a marker that it touches. All positions are characters from the start of
the raw text, so no chunking can matter. Each character is looked at once, however many markers
there are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.segments.formats.spec import Channel, Mode, Spec

SPACE = re.compile(r"\s*")


@immutable
class Region:
    """Raw text from ``start`` to ``end``: a marker (``channel`` None), or text of a channel.
    ``text`` is what there is to show: nothing of a marker or of the white space that touches it."""

    channel: Channel | None
    start: int
    end: int
    text: str


class Scanner:
    """``mode`` is where the text stands now."""

    __slots__ = ("_fresh", "_partial", "_settled", "_spaces", "_spec", "mode")

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._fresh = spec.prefilled
        """Nothing but white space since the last marker."""
        self._settled = 0
        self._spaces: list[str] = []
        self._partial = ""
        self.mode: Mode = spec.modes[spec.start]

    @property
    def idle(self) -> bool:
        """Nothing is held, and nothing depends on what came before."""
        return not (self._fresh or self._partial or self._spaces or self.mode.then)

    def feed(self, text: str) -> list[Region]:
        """The regions that ``text`` makes certain."""
        regions: list[Region] = []
        window, at = self._partial + text, 0
        self._partial = ""
        while at < len(window):
            then = self.mode.then
            begins = _first_character(window, at) if then else at
            found = self._marker(window, begins)
            if found is not None:
                self._text(window[at : found.start()], regions, touches=True)
                self._add(regions, None, len(found[0]), "")
                self.mode = self._spec.modes[self.mode.markers[found[0]]]
                self._fresh = True
                at = found.end()
                continue
            settled = self._held_from(window, at)
            if then and begins < settled:
                # Markers are others from the first character on, so it is looked at again.
                self.mode = self._spec.modes[then]
                continue
            self._text(window[at:settled], regions, touches=False)
            self._partial = window[settled:]
            break
        return regions

    def flush(self) -> list[Region]:
        """What was held, as text: no marker can follow any more."""
        regions: list[Region] = []
        text, self._partial = self._partial, ""
        self._text(text, regions, touches=False)
        if self._spaces:
            spaces = self._take_spaces()
            self._add(regions, self.mode.channel, len(spaces), spaces)
        return regions

    def _marker(self, window: str, at: int) -> re.Match[str] | None:
        """The first marker from ``at`` on; in a mode with a ``then``, one exactly there."""
        pattern = self.mode.pattern
        if pattern is None:
            return None
        return pattern.match(window, at) if self.mode.then else pattern.search(window, at)

    def _held_from(self, window: str, at: int) -> int:
        """Where the longest suffix of ``window[at:]`` begins that may become a marker."""
        end = len(window)
        first = max(at, end - self.mode.longest + 1)
        for begin in range(first, end):
            if window[begin] in self.mode.starts:
                suffix = window[begin:]
                if any(marker.startswith(suffix) for marker in self.mode.markers):
                    return begin
        return end

    def _text(self, text: str, regions: list[Region], *, touches: bool) -> None:
        """Text without markers. ``touches``: a marker follows it directly."""
        channel = self.mode.channel
        if self._fresh:
            shown = text.lstrip()
            self._add(regions, channel, len(text) - len(shown), "")
            text = shown
            self._fresh = not text
        core = text.rstrip() if self.mode.markers else text
        if core:
            held = self._take_spaces() + core if self._spaces else core
            self._add(regions, channel, len(held), held)
        space = text[len(core) :]
        if touches:
            self._add(regions, channel, len(self._take_spaces()) + len(space), "")
        elif space:
            self._spaces.append(space)

    def _take_spaces(self) -> str:
        spaces = "".join(self._spaces)
        self._spaces.clear()
        return spaces

    def _add(self, regions: list[Region], channel: Channel | None, length: int, text: str) -> None:
        if length:
            start, self._settled = self._settled, self._settled + length
            regions.append(Region(channel, start, self._settled, text))


def holds_no_markup(text: str, starts: Iterable[str]) -> bool:
    """Whether no marker begins in ``text``, which is not empty, and no white space at its end could
    touch one. ``starts``: the characters with which a marker begins."""
    for start in starts:
        if start in text:
            return False
    return not text[-1].isspace()


def _first_character(window: str, at: int) -> int:
    """The place of the first character from ``at`` on that is no white space."""
    space = SPACE.match(window, at)
    return space.end() if space else at
