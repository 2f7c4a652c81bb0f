"""``text_offset`` of the Completions API: where each token begins in the visible text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.values import Logprob


class Offsets:
    """The places of one choice's tokens, in characters from the start of its text.

    A token is looked for in the text from the end of the token before it, so text that has no
    entries is passed over. A token inside a character has the offset of that character, and one
    whose bytes are nowhere in the text (a special token that is not shown) has no extent: it
    stands where the token before it ended. So offsets never decrease and never pass the end of
    the text, and where entries come with their text they do not depend on its cut into deltas.
    """

    __slots__ = ("_at", "_base", "_decoder", "_running", "_text")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        """The visible text from ``_base`` on."""
        self._base = 0
        self._at = 0
        """The end of the last token, in ``_text``."""
        self._running = ""
        """A token that begins at ``_at`` and runs off the end of the text so far, else empty."""

    def take(self, text: str, logprobs: Iterable[Logprob]) -> list[int]:
        """The offsets of the tokens that came with the next ``text``."""
        self._text += text
        starts = [self._start(entry.data) for entry in logprobs]
        self._text = self._text[self._at :]
        self._base += self._at
        self._at = 0
        return starts

    def skip(self, text: str) -> None:
        """The next ``text`` is visible, and no token that is listed reaches into it."""
        self._base += len(self._text) + len(text)
        self._text, self._at, self._running = "", 0, ""
        self._decoder.reset()

    def _start(self, data: bytes) -> int:
        if self._running and self._text.startswith(self._running, self._at):
            self._at += len(self._running)
        self._running = ""
        spelled = self._decoder.decode(data)
        start = self._text.find(spelled, self._at)
        if start >= 0:
            self._at = start + len(spelled)
            return self._base + start
        for length in range(min(len(spelled), len(self._text) - self._at), 0, -1):
            if self._text.endswith(spelled[:length]):
                # The rest of it is held back, or was cut at a stop string.
                self._running = spelled
                self._at = len(self._text) - length
                return self._base + self._at
        self._decoder.reset()
        return self._base + self._at
