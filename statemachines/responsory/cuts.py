"""Where a text with log probabilities was cut into deltas.

A token begins in the delta that its entry came with. While the entries spell the text, that says
nothing new. Where they do not (an engine that gives entries for some tokens alone, a token that is
not shown or of which a marker took a part), it says where they stand, and is kept when deltas are
dropped.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from responsory.events import TextDelta, TextDone

Cuts: TypeAlias = tuple[tuple[int, int], ...]
"""(characters, entries) of each delta, in order; deltas without entries in a row are one."""


class CutsSoFar:
    """The cuts of the open part: all that compaction has to know of the deltas that it drops."""

    __slots__ = ("_bare", "_found", "_length")

    def __init__(self) -> None:
        self._bare = False
        """The last deltas had no entries; ``_length``: of their text, in characters."""
        self._length = 0
        self._found = array("Q")
        """The cuts before those: characters, entries, characters, entries, and so on."""

    def add(self, delta: TextDelta) -> None:
        """The next delta of the part."""
        if delta.logprobs:
            self._settle()
            self._found.extend((len(delta.text), len(delta.logprobs)))
        else:
            self._bare = True
            self._length += len(delta.text)

    def take(self, done: TextDone) -> Cuts:
        """Those of the part, which ends with ``done``: empty where its entries spell it, of which
        only the last may reach past its end, or came all at once. Where no delta came, they are
        what it says itself."""
        self._settle()
        found, self._found = self._found, array("Q")
        if not found:
            return done.cuts
        if len(found) == 2:
            return ()
        spelled = b"".join([entry.data for entry in done.logprobs])
        text, last = done.text.encode(), done.logprobs[-1]
        if spelled.startswith(text) and len(spelled) - len(last.data) <= len(text):
            return ()
        return tuple(zip(found[::2], found[1::2], strict=True))

    def _settle(self) -> None:
        """The next delta has entries, or there is none."""
        if self._bare:
            self._found.extend((self._length, 0))
            self._bare = False
            self._length = 0
