"""Raw text cut into regions: markers, the text of each mode between them, and calls.

What may still become a marker is held: the longest suffix that begins one, and the white space
before it, which belongs to a marker that it touches. So is all text behind an opener until its
reader finds the header of a call; where it finds none, the opener was text, and the rest is looked
at again. All positions are characters from the start of the raw text, so no chunking can matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from responsory.commands import CallInput
from responsory.segments.call_text import CallText
from responsory.segments.custom_input import CustomInputs
from responsory.segments.formats.spec import Verdict
from responsory.segments.regions import Tiles
from responsory.segments.tools import NO_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from responsory.segments.formats.spec import Channel, Mode, Spec
    from responsory.segments.regions import Region
    from responsory.segments.tools import Tools

SPACE = re.compile(r"\s*")


class Scanner:
    """``mode`` is where the text stands now; in a call that is read, the one before it."""

    __slots__ = ("_call", "_inputs", "_partial", "_spec", "_taken", "_tiles", "_tools", "mode")

    def __init__(self, spec: Spec, tools: Tools = NO_TOOLS) -> None:
        self._spec = spec
        self._tools = tools
        self._inputs = CustomInputs() if tools.custom else None
        self._tiles = Tiles(fresh=spec.prefilled)
        self._taken = 0
        """Characters so far."""
        self._partial = ""
        """The end of the text that may become a marker."""
        self._call: CallText | None = None
        """The call that the text is in, or what may be one."""
        self.mode: Mode = spec.modes[spec.start]

    @property
    def idle(self) -> bool:
        """Nothing is held, and nothing depends on what came before."""
        return not (self._tiles.holds or self._partial or self.mode.then or self._call)

    @property
    def channel(self) -> Channel:
        """What text becomes here."""
        call = self._call
        return CallInput if call is not None and call.opened else self.mode.channel

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """What takes text at a glance as arguments of the open call; None where that needs more."""
        call = self._call
        if call is None or self._partial or self._tiles.holds:
            return None
        look = call.glance
        return look if look is None or self._inputs is None else self._inputs.glance(look)

    def feed(self, text: str) -> list[Region]:
        """The regions that ``text`` makes certain."""
        window, self._partial = self._partial + text, ""
        self._taken += len(text)
        self._scan(window, 0)
        return self._take()

    def flush(self, *, cut: bool = False) -> list[Region]:
        """What was held: no marker can follow any more. ``cut``: the text did not end by itself, so
        what may have become a call is dropped; else it is text."""
        while (call := self._call) is not None and not call.opened and not cut:
            self._call = None
            self._scan(call.take_held(), self._after_prose(0))
        if call is not None and not call.broken:
            self._call, self._partial = None, ""
            call.end(self._taken, self._tiles, cut=cut)
        text, self._partial = self._partial, ""
        self._text(text)
        self._tiles.release(self.mode.channel)
        regions, inputs = self._take(), self._inputs
        # What is held of a custom call's input may be the half of something, and is no more if cut.
        return regions if inputs is None or cut else regions + inputs.rest(self._taken)

    def _take(self) -> list[Region]:
        """The regions that were laid."""
        regions, inputs = self._tiles.take(), self._inputs
        return regions if inputs is None else inputs.unwrap(regions)

    def _scan(self, window: str, past: int) -> None:
        """Cut up ``window``, the last of the raw text. No marker begins before ``past``."""
        at = begun = 0
        """``begun``: where in the window that begins which may be a call."""
        while at < len(window):
            call = self._call
            if call is None or call.broken:
                at = self._look(window, at, past)
                if self._call is not None:
                    begun = at - len(self._call.opener)
                continue
            at, verdict = call.read(window, at, self._taken - len(window), self._tiles)
            if verdict is Verdict.READING:
                break
            if verdict is Verdict.PROSE:
                self._call = None
                window = call.take_held() + window
                at, past = begun, self._after_prose(begun)
            else:
                self._after_call(call)
        call = self._call
        if call is not None and not call.opened:
            call.hold(window[begun:])
        elif call is not None and not call.broken:
            self._partial = window[at:]

    def _look(self, window: str, at: int, past: int) -> int:
        """Text up to the next marker or opener, and that. Gives where to go on; the end, if all the
        rest is held."""
        mode = self.mode
        begins = _first_character(window, at) if mode.then else at
        found = self._marker(window, max(begins, past))
        if found is None:
            held = self._held_from(window, max(at, past))
            if mode.then and begins < held:
                # Markers are others from the first character on, so it is looked at again.
                self.mode = self._spec.modes[mode.then]
                return at
            self._text(window[at:held])
            self._partial = window[held:]
            return len(window)
        marker = found[0]
        call = mode.calls.get(marker)
        self._text(window[at : found.start()], touching=call is None)
        if call is not None:
            self._call = CallText(call, marker, mode.channel, self._tools)
            return found.end()
        if self._call is not None:
            self._call.close(self._tiles.settled + len(marker), self._tiles)
            self._call = None
        else:
            self._tiles.marker(mode.channel, len(marker))
        self.mode = self._spec.modes[mode.markers[marker]]
        self._tiles.fresh = True
        return found.end()

    def _text(self, text: str, *, touching: bool = False) -> None:
        """Text of the mode, without markers."""
        if self._call is not None and text.strip():
            self._call.bare = False
        channel, markers = self.mode.channel, bool(self.mode.known)
        self._tiles.phase = self.mode.phase
        self._tiles.text(channel, text, touching=touching, markers=markers)

    def _marker(self, window: str, at: int) -> re.Match[str] | None:
        """The first marker from ``at`` on; in a mode with a ``then``, one exactly there, and not
        while a longer one may come."""
        pattern = self.mode.pattern
        if pattern is None:
            return None
        if self.mode.then is None:
            return pattern.search(window, at)
        rest = window[at : at + self.mode.longest]
        if any(len(marker) > len(rest) and marker.startswith(rest) for marker in self.mode.known):
            return None
        return pattern.match(window, at)

    def _held_from(self, window: str, at: int) -> int:
        """Where the longest suffix of ``window[at:]`` begins that may become a marker."""
        end = len(window)
        first = max(at, end - self.mode.longest + 1)
        for begin in range(first, end):
            if window[begin] in self.mode.starts:
                suffix = window[begin:]
                if any(marker.startswith(suffix) for marker in self.mode.known):
                    return begin
        return end

    def _after_prose(self, at: int) -> int:
        """The opener at ``at`` was text: from where markers are looked for again."""
        then = self.mode.then
        if then is None:
            return at + 1
        self.mode = self._spec.modes[then]
        return at

    def _after_call(self, call: CallText) -> None:
        """The reader is done: the mode that follows."""
        if call.broken:
            self.mode = self._spec.modes[call.call.broken]
            # White space inside the arguments is theirs.
            self._tiles.fresh = call.bare
        else:
            self._call = None
            self.mode = self._spec.modes[call.call.then]
            self._tiles.fresh = True


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
