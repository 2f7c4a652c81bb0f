"""Which tokens count, and whose logprobs are shown, when text is shown in part.

A token belongs to the character at which it begins. One without text of its own (inside a
character, or not shown at all) belongs to the next character.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from responsory.commands import Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.segments.formats.spec import Channel
    from responsory.segments.regions import Region
    from responsory.values import Logprob


class TokenCount:
    """``output``: all ids that were taken. ``reasoning``: those between the markers of reasoning.

    Ids come in bundles, each with the text that it made. Where in it each of several ids begins is
    not known, and then reasoning is an estimate: a marker is one id, and the others are spread
    evenly over the rest of the text. It is exact where each id has a bundle of its own.
    """

    __slots__ = ("_bundles", "_regions", "output", "reasoning")

    def __init__(self) -> None:
        self.output = 0
        self.reasoning = 0
        self._bundles: deque[tuple[int, int, int]] = deque()
        self._regions: deque[Region] = deque()

    @property
    def pending(self) -> bool:
        """It is not certain yet of all tokens what they are."""
        return bool(self._bundles)

    def pass_by(self, channel: Channel, ids: int) -> None:
        """``ids`` tokens, while nothing is pending, all of whose text is of the channel."""
        self.output += ids
        if channel is Reasoning:
            self.reasoning += ids

    def add(self, start: int, end: int, ids: int) -> None:
        """``ids`` tokens made the text from ``start`` to ``end``."""
        if ids:
            self.output += ids
            self._bundles.append((start, end, ids))

    def settle(self, region: Region) -> None:
        """The next region is known, and so is what all bundles that end in it were."""
        self._regions.append(region)
        while self._bundles and max(self._bundles[0][0] + 1, self._bundles[0][1]) <= region.end:
            start, end, ids = self._bundles.popleft()
            while self._regions[0].end <= start:
                self._regions.popleft()
            self.reasoning += _reasoning(self._regions, start, end, ids)
        if not self._bundles:
            self._regions.clear()

    def flush(self, channel: Channel) -> None:
        """The text has ended in the channel: tokens after it that made none are of it."""
        self.reasoning += sum(ids for _, _, ids in self._bundles if channel is Reasoning)
        self._bundles.clear()
        self._regions.clear()

    def cut(self, end: int) -> None:
        """Nothing from ``end`` on was wanted: tokens that begin there do not count."""
        while self._bundles and self._bundles[-1][0] >= end:
            self.output -= self._bundles.pop()[2]


def _reasoning(regions: deque[Region], start: int, end: int, ids: int) -> int:
    """How many of the ``ids`` that made the text from ``start`` to ``end`` were reasoning."""
    if ids == 1 or start == end:
        return ids if regions[0].channel is Reasoning else 0
    own = [region for region in regions if region.start < end]
    markers = sum(region.channel is None and region.start >= start for region in own)
    texts = [
        (region.channel, min(region.end, end) - max(region.start, start))
        for region in own
        if region.channel is not None
    ]
    total, rest = sum(length for _, length in texts), max(0, ids - markers)
    count = at = 0
    for channel, length in texts:
        if channel is Reasoning:
            count += _before(at + length, total, rest) - _before(at, total, rest)
        at += length
    return count


def _before(at: int, total: int, ids: int) -> int:
    """How many of the ``ids``, spread evenly over ``total`` characters, have their middle before
    ``at``: those k with (2k + 1) * total < 2 * ids * at."""
    return (2 * ids * at + total - 1) // (2 * total)


class VisibleLogprobs:
    """The logprobs of the answer's tokens, each given out with the first of its text that is shown.

    A token cut by a marker or a stop string keeps its logprob if any of its text is visible. One
    without text after which none comes either is of the answer, if that is what was shown last.
    """

    __slots__ = ("_open", "_ready", "_waiting")

    def __init__(self) -> None:
        self._open = True
        """The answer has text after all reasoning and calls, or there were none of these."""
        self._waiting: deque[tuple[int, int, Logprob]] = deque()
        """(start, end, logprob) in the raw text; the region is not known yet."""
        self._ready: deque[tuple[int, Logprob]] = deque()
        """(first character, logprob) in the answer; not given out yet."""

    def __bool__(self) -> bool:
        return bool(self._waiting or self._ready)

    def add(self, extents: Iterable[tuple[int, int, Logprob]]) -> None:
        """Tokens with their places in the raw text, in order; an empty one is the next
        character's."""
        self._waiting.extend((start, max(start + 1, end), entry) for start, end, entry in extents)

    def settle(self, region: Region, origin: int) -> None:
        """The next region is known; its text, if it is the answer's, begins there at ``origin``."""
        if region.text or region.says is not None:
            self._open = region.channel is Text
        waiting, left = self._waiting, []
        while waiting and waiting[0][0] < region.end:
            start, end, entry = waiting.popleft()
            if region.channel is Text and region.text:
                self._ready.append((origin + max(0, start - region.start), entry))
            elif end > region.end:
                left.append((start, end, entry))
        waiting.extendleft(reversed(left))

    def pass_by(self, channel: Channel) -> None:
        """Text of the channel, while nothing waits, whose tokens are given out elsewhere."""
        self._open = channel is Text

    def rest(self, channel: Channel) -> tuple[Logprob, ...]:
        """The text has ended in the channel: those of the answer that no text came after."""
        entries = [entry for _, _, entry in self._waiting if self._open and channel is Text]
        self._waiting.clear()
        return tuple(entries)

    def take(self, released: int) -> tuple[Logprob, ...]:
        """Those whose first character is before ``released`` in the answer."""
        entries = []
        while self._ready and self._ready[0][0] < released:
            entries.append(self._ready.popleft()[1])
        return tuple(entries)
