"""Regions: how raw text is divided, laid down in order and without a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.commands import CallClosed, CallOpened
    from responsory.segments.formats.spec import Channel
    from responsory.values import Phase


@immutable
class Region:
    """Raw text from ``start`` to ``end``: a marker (``channel`` None), or text of a channel.

    ``text`` is what there is to show: nothing of a marker or of the white space that touches it.
    ``says``: the call that opens or closes with it. ``phase``: that of text of the answer. Only
    regions of a call may be empty, or show text that is not the raw one.
    """

    channel: Channel | None
    start: int
    end: int
    text: str
    says: CallOpened | CallClosed | None = None
    phase: Phase | None = None


class Tiles:
    """Lays regions. White space that may yet touch a marker is held.

    ``settled``: characters of the raw text that are in regions. ``fresh``: nothing but white space
    came since the last marker, so white space touches it. ``phase``: of the text that comes.
    """

    __slots__ = ("_regions", "_spaces", "fresh", "phase", "settled")

    def __init__(self, *, fresh: bool) -> None:
        self.fresh = fresh
        self.phase: Phase | None = None
        self.settled = 0
        self._regions: list[Region] = []
        self._spaces: list[str] = []

    @property
    def holds(self) -> bool:
        """White space is held, or would be dropped."""
        return bool(self._spaces) or self.fresh

    def take(self) -> list[Region]:
        """The regions since the last call."""
        regions, self._regions = self._regions, []
        return regions

    def text(self, channel: Channel, text: str, *, touching: bool, markers: bool = True) -> None:
        """Text without markers. ``touching``: a marker follows it directly. ``markers``: one may
        follow at all, so white space at its end is held."""
        if self.fresh:
            shown = text.lstrip()
            self._lay(channel, len(text) - len(shown), "")
            text = shown
            self.fresh = not text
        core = text.rstrip() if markers else text
        if core:
            held = self._take_spaces() + core if self._spaces else core
            self._lay(channel, len(held), held)
        space = text[len(core) :]
        if touching:
            self._lay(channel, len(self._take_spaces()) + len(space), "")
        elif space:
            self._spaces.append(space)

    def marker(self, channel: Channel, length: int) -> None:
        """The next ``length`` characters are a marker, behind white space of the channel."""
        self._lay(channel, len(self._take_spaces()), "")
        self._lay(None, length, "")

    def release(self, channel: Channel) -> None:
        """White space that is held touches no marker."""
        spaces = self._take_spaces()
        self._lay(channel, len(spaces), spaces)

    def reach(
        self,
        channel: Channel | None,
        end: int,
        text: str = "",
        says: CallOpened | CallClosed | None = None,
    ) -> None:
        """All raw text up to ``end`` is one region, though it be none."""
        start, self.settled = self.settled, end
        self._regions.append(Region(channel, start, end, text, says, self.phase))

    def _lay(self, channel: Channel | None, length: int, text: str) -> None:
        if length:
            self.reach(channel, self.settled + length, text)

    def _take_spaces(self) -> str:
        spaces = "".join(self._spaces)
        self._spaces.clear()
        return spaces
