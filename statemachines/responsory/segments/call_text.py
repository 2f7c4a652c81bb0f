"""The text behind one opener, from where it may be a call to the end of that call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.segments.formats.spec import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from responsory.segments.formats.spec import Call, Channel, Part
    from responsory.segments.regions import Tiles
    from responsory.segments.tools import Tools


class CallText:
    """``opened``: a header was there, so this is a call. ``bare``: the open call has no arguments
    yet. ``broken``: the reader gave up, and text up to the closer is of the arguments."""

    __slots__ = ("_channel", "_held", "_reader", "bare", "broken", "call", "opened", "opener")

    def __init__(self, call: Call, opener: str, channel: Channel, tools: Tools) -> None:
        self.call = call
        self.opener = opener
        self.opened = False
        self.bare = False
        self.broken = False
        self._channel = channel
        """Of the text before the opener."""
        self._reader = call.format.reader(tools)
        self._held: list[str] = []
        """All of it, from the opener on, while no header was there."""

    def hold(self, text: str) -> None:
        """The window ended with ``text``, and it may yet be a call."""
        self._held.append(text)

    def take_held(self) -> str:
        """What ``hold`` was given."""
        held = "".join(self._held)
        self._held.clear()
        return held

    def read(self, window: str, at: int, base: int, tiles: Tiles) -> tuple[int, Verdict]:
        """How far the window was read from ``at`` on, and what it is. The window begins at ``base``
        in the raw text."""
        at, parts = self._reader.read(window, at)
        for part in parts:
            self._tell(part, base + part.end, tiles)
        verdict = self._reader.verdict
        self.broken = verdict is Verdict.BROKEN
        return at, verdict

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """What takes text at a glance as arguments of the call; None while there are none, or they
        are broken."""
        return None if self.bare or self.broken or not self.opened else self._reader.glance

    def close(self, end: int, tiles: Tiles) -> None:
        """The closer, up to ``end``. A call without arguments has an empty object of them."""
        if self.bare:
            tiles.reach(CallInput, tiles.settled, "{}")
            self.bare = False
        tiles.reach(None, end, says=CallClosed())

    def end(self, taken: int, tiles: Tiles, *, cut: bool) -> None:
        """The raw text ended at ``taken``, inside the call or what may have become one."""
        if not self.opened:
            tiles.marker(self._channel, len(self.opener))
            tiles.reach(None, taken)
            return
        for says in self._reader.finish(cut=cut):
            if isinstance(says, CallInput):
                tiles.reach(CallInput, taken, says.text)
            else:
                self.close(taken, tiles)
        if tiles.settled < taken:
            tiles.reach(CallInput, taken)

    def _tell(self, part: Part, end: int, tiles: Tiles) -> None:
        says = part.says
        if isinstance(says, CallOpened):
            if not self.opened:
                self._held.clear()
                self.opened = True
                tiles.marker(self._channel, len(self.opener))
            self.bare = True
            tiles.reach(CallInput, end, says=says)
        elif isinstance(says, CallInput):
            self.bare = False
            tiles.reach(CallInput, end, says.text)
        elif says is not None:
            self.close(end, tiles)
        elif end > tiles.settled:
            tiles.reach(CallInput, end)
