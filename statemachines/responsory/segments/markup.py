"""Raw text cut into regions: markers, the text of each mode between them, and calls.

What may still become a marker is held: the longest suffix that begins one, and the white space
before it, which belongs to a marker that it touches. So is all text behind an opener until its
reader finds the header of a call; where it finds none, the opener was text, and the rest is looked
at again. All positions are characters from the start of the raw text, so no chunking can matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.immutable import immutable
from responsory.segments.formats.spec import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.segments.formats.spec import (
        Call,
        CallReader,
        Channel,
        Mode,
        Part,
        Spec,
    )

SPACE = re.compile(r"\s*")


@immutable
class Region:
    """Raw text from ``start`` to ``end``: a marker (``channel`` None), or text of a channel.
    ``text`` is what there is to show: nothing of a marker or of the white space that touches it.
    ``says``: the call that opens or closes with it. Only regions of a call may be empty, or show
    text that is not the raw one."""

    channel: Channel | None
    start: int
    end: int
    text: str
    says: CallOpened | CallClosed | None = None


class Scanner:
    """``mode`` is where the text stands now. In a call it is still the mode before it."""

    __slots__ = ("_bare", "_call", "_fresh", "_held", "_opened", "_opener", "_partial", "_reader",
                 "_settled", "_spaces", "_spec", "_taken", "mode")  # fmt: skip

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._fresh = spec.prefilled
        """Nothing but white space since the last marker."""
        self._taken = 0
        """Characters so far."""
        self._settled = 0
        """Those that are in regions."""
        self._spaces: list[str] = []
        self._partial = ""
        self.mode: Mode = spec.modes[spec.start]
        self._call: Call | None = None
        """The call that is read, or may be one."""
        self._reader: CallReader | None = None
        self._opener = ""
        self._opened = False
        """Its header was there."""
        self._bare = False
        """A call is open that has no arguments yet."""
        self._held: list[str] = []
        """What may be a call: all of it, from the opener on."""

    @property
    def idle(self) -> bool:
        """Nothing is held, and nothing depends on what came before."""
        mode = self.mode
        return not (
            self._fresh
            or self._partial
            or self._spaces
            or mode.then
            or self._reader
            or mode.channel is CallInput
        )

    def feed(self, text: str) -> list[Region]:
        """The regions that ``text`` makes certain."""
        regions: list[Region] = []
        window, self._partial = self._partial + text, ""
        self._taken += len(text)
        self._scan(window, 0, regions)
        return regions

    def flush(self, *, cut: bool = False) -> list[Region]:
        """What was held: no marker can follow any more. ``cut``: the text did not end by itself, so
        what may have become a call is dropped; else it is text."""
        regions: list[Region] = []
        while self._reader is not None and not self._opened and not cut:
            window = self._take_held()
            self._reader = None
            self._scan(window, self._after_prose(0), regions)
        if self._reader is not None:
            self._end_of_call(self._reader, regions, cut=cut)
        text, self._partial = self._partial, ""
        self._text(text, regions, touches=False)
        if self._spaces:
            spaces = self._take_spaces()
            self._add(regions, self.mode.channel, len(spaces), spaces)
        return regions

    def _scan(self, window: str, past: int, regions: list[Region]) -> None:
        """Cut up ``window``, the last of the raw text. No marker begins before ``past``."""
        at = start = 0
        """``start``: where in the window that begins which may be a call."""
        while at < len(window):
            reader = self._reader
            if reader is None:
                at = start = self._look(window, at, past, regions)
                if self._reader is not None:
                    start -= len(self._opener)
                continue
            at, parts = reader.read(window, at)
            for part in parts:
                self._part(part, self._taken - len(window) + part.end, regions)
            verdict = reader.verdict
            if verdict is Verdict.READING:
                break
            self._reader = None
            if verdict is Verdict.PROSE:
                if self._held:
                    window = self._take_held() + window
                at = start
                past = self._after_prose(at)
            else:
                self._after_call(verdict)
        if self._reader is not None and not self._opened:
            self._held.append(window[start:])
        elif self._reader is not None:
            self._partial = window[at:]

    def _look(self, window: str, at: int, past: int, regions: list[Region]) -> int:
        """Text up to the next marker or opener, and that; where to go on, the end if all the rest
        is held. Behind an opener ``_reader`` is set."""
        then = self.mode.then
        begins = _first_character(window, at) if then else at
        found = self._marker(window, max(begins, past))
        if found is not None:
            marker = found[0]
            call = self.mode.calls.get(marker)
            self._text(window[at : found.start()], regions, touches=call is None)
            if call is not None:
                self._call, self._opener, self._opened = call, marker, False
                self._reader = call.format.reader()
                return found.end()
            if self.mode.channel is CallInput:
                self._close_call(self._settled + len(marker), regions)
            else:
                self._add(regions, None, len(marker), "")
            self.mode = self._spec.modes[self.mode.markers[marker]]
            self._fresh = True
            return found.end()
        held = self._held_from(window, max(at, past))
        if then and begins < held:
            # Markers are others from the first character on, so it is looked at again.
            self.mode = self._spec.modes[then]
            return at
        self._text(window[at:held], regions, touches=False)
        self._partial = window[held:]
        return len(window)

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
                if any(marker.startswith(suffix) for marker in self.mode.known):
                    return begin
        return end

    # --- calls ----------------------------------------------------------------------------------

    def _part(self, part: Part, end: int, regions: list[Region]) -> None:
        """What a reader says of the raw text up to ``end``."""
        says = part.says
        if isinstance(says, CallOpened):
            if not self._opened:
                self._add(regions, self.mode.channel, len(self._take_spaces()), "")
                self._add(regions, None, len(self._opener), "")
                self._opened = True
                self._held.clear()
            self._bare = True
            self._reach(regions, CallInput, end, "", says)
        elif isinstance(says, CallInput):
            self._bare = False
            self._reach(regions, CallInput, end, says.text)
        elif says is not None:
            self._close_call(end, regions)
        elif end > self._settled:
            self._reach(regions, CallInput, end, "")

    def _close_call(self, end: int, regions: list[Region]) -> None:
        """The closer, up to ``end``. A call without arguments has an empty object of them."""
        if self._bare:
            self._reach(regions, CallInput, self._settled, "{}")
            self._bare = False
        self._reach(regions, None, end, "", CallClosed())

    def _after_call(self, verdict: Verdict) -> None:
        """The reader is done: the mode that follows."""
        call = self._call
        if call is not None:
            broken = verdict is Verdict.BROKEN
            self.mode = self._spec.modes[call.broken if broken else call.then]
            # White space inside the arguments is theirs.
            self._fresh = self._bare or not broken

    def _after_prose(self, at: int) -> int:
        """The opener at ``at`` was text: from where markers are looked for again."""
        then = self.mode.then
        if then is None:
            return at + 1
        self.mode = self._spec.modes[then]
        return at

    def _end_of_call(self, reader: CallReader, regions: list[Region], *, cut: bool) -> None:
        """The text has ended in a call, or in what may have become one."""
        self._reader, self._partial = None, ""
        if not self._opened:
            self._take_held()
            self._add(regions, self.mode.channel, len(self._take_spaces()), "")
            self._reach(regions, None, self._taken, "")
            return
        for says in reader.finish(cut=cut):
            if isinstance(says, CallInput):
                self._reach(regions, CallInput, self._taken, says.text)
            else:
                self._close_call(self._taken, regions)
        if self._settled < self._taken:
            self._reach(regions, CallInput, self._taken, "")

    def _take_held(self) -> str:
        held = "".join(self._held)
        self._held.clear()
        return held

    # --- regions --------------------------------------------------------------------------------

    def _text(self, text: str, regions: list[Region], *, touches: bool) -> None:
        """Text without markers. ``touches``: a marker follows it directly."""
        channel = self.mode.channel
        if channel is CallInput and text and not text.isspace():
            self._bare = False
        if self._fresh:
            shown = text.lstrip()
            self._add(regions, channel, len(text) - len(shown), "")
            text = shown
            self._fresh = not text
        core = text.rstrip() if self.mode.known else text
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
            self._reach(regions, channel, self._settled + length, text)

    def _reach(
        self,
        regions: list[Region],
        channel: Channel | None,
        end: int,
        text: str,
        says: CallOpened | CallClosed | None = None,
    ) -> None:
        """All raw text up to ``end`` is one region."""
        start, self._settled = self._settled, end
        regions.append(Region(channel, start, end, text, says))


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
