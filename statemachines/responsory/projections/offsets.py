"""``text_offset`` of the Completions API: where each token begins in the visible text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from responsory.events import TextDone
    from responsory.values import Logprob

AHEAD = 256
"""How many characters ahead a token is looked for that does not stand where it is due: what one
step shows, and a bound on the time that a text costs whose tokens do not spell it."""


class Offsets:
    """The places of one choice's tokens, in characters from the start of its text.

    A token begins in the text that its entry came with, where the token before it ended; what is
    left of that one there comes first. Text without entries is passed over. A token inside a
    character has the offset of that character, and one that is not shown has no extent: it stands
    where the token before it ended. So offsets never decrease and never pass the end of the text,
    and while the entries spell the text they do not depend on its cut into deltas. What spells all
    of a delta but for tokens that are not shown is taken for that before anything is looked for.
    """

    __slots__ = ("_decoder", "_end", "_left")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end = 0
        """The end of the text so far."""
        self._left = ""
        """What is still to come of a token that runs off the end."""

    def take(self, text: str, logprobs: Iterable[Logprob]) -> list[int]:
        """The offsets of the tokens that came with the next ``text``."""
        base, starts = self._end, list[int]()
        self._end += len(text)
        at = self._rest(text)
        entries = tuple(logprobs)
        # One token alone is of text that is left, if there is any.
        looks = len(entries) > 1 or (entries and at == len(text))
        if looks and (exact := self._spelled(text, at, entries)) is not None:
            return [base + start for start in exact]
        for entry in entries:
            spelled = self._decoder.decode(entry.data)
            start, at = self._place(spelled, text, at)
            starts.append(base + start)
        return starts

    def skip(self, text: str) -> None:
        """The next ``text`` is visible, and no token that is listed reaches into it."""
        self._end += len(text)
        self._left = ""
        self._decoder.reset()

    def _spelled(self, text: str, at: int, entries: Sequence[Logprob]) -> list[int] | None:
        """The starts in ``text`` of tokens that spell all of it from ``at`` on, the last of them
        perhaps cut, where those that do not go on with it are not shown; else None, and nothing
        was taken."""
        decoder, starts, left = self._decoder, list[int](), ""
        begun = decoder.getstate()
        last = len(entries) - 1
        for index, entry in enumerate(entries):
            starts.append(at)
            before = decoder.getstate()
            spelled = decoder.decode(entry.data)
            if text.startswith(spelled, at):
                at += len(spelled)
            elif index == last and at < len(text) and spelled.startswith(text[at:]):
                left = spelled[len(text) - at :]
                at = len(text)
            else:
                decoder.setstate(before)
        if at == len(text):
            self._left = left
            return starts
        decoder.setstate(begun)
        return None

    def _rest(self, text: str) -> int:
        """How much of the next ``text`` belongs to the token that ran off the end."""
        left = self._left
        same = _common(left, text)
        # Where the text goes on in another way, the token was cut.
        self._left = left[same:] if same == len(text) else ""
        return same

    def _place(self, spelled: str, text: str, at: int) -> tuple[int, int]:
        """The start and the end in ``text`` of a token that is due at ``at``."""
        self._left = ""
        # One without text is nowhere, or inside a character that a later one ends.
        if text.startswith(spelled, at):
            return at, at + len(spelled)
        if at < len(text) and spelled.startswith(text[at:]):
            return self._off_the_end(spelled, text, at)
        if at == 0:
            # Its start may not be shown: it belongs to a marker, or is a space that is left out.
            for hidden in range(1, min(len(spelled), AHEAD)):
                tail = spelled[hidden:]
                same = _common(tail, text)
                if same in (len(tail), len(text)):
                    self._left = tail[same:]
                    return 0, same
        found = text.find(spelled, at, at + AHEAD + len(spelled))
        if found >= 0:
            return found, found + len(spelled)
        first = max(at, len(text) - min(len(spelled) - 1, AHEAD))
        for start in range(first, min(len(text), at + AHEAD + 1)):
            if spelled.startswith(text[start:]):
                return self._off_the_end(spelled, text, start)
        self._decoder.reset()
        return at, at

    def _off_the_end(self, spelled: str, text: str, start: int) -> tuple[int, int]:
        """Of one whose rest is held back, or was cut at a stop string."""
        self._left = spelled[len(text) - start :]
        return start, len(text)


def _common(first: str, second: str) -> int:
    """How many characters they begin with together."""
    length = min(len(first), len(second))
    if first[:length] == second[:length]:
        return length
    return next(at for at in range(length) if first[at] != second[at])


def done_offsets(offsets: Offsets, done: TextDone) -> list[int]:
    """The offsets of all tokens of a text, as its deltas would give them."""
    starts: list[int] = []
    at = 0
    for length, count in done.cuts:
        own = done.logprobs[len(starts) : len(starts) + count]
        starts += offsets.take(done.text[at : at + length], own)
        at += length
    return starts + offsets.take(done.text[at:], done.logprobs[len(starts) :])
