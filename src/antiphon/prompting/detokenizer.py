"""Token ids to text, one at a time, so that the text is always whole characters.

Text is a function of the bytes of the ids alone: no space is cleaned up or stripped, and the
decoder starts empty, so nothing of the prompt ever leaks. Only a truly incomplete character is
held back, three bytes at most; an invalid byte becomes U+FFFD at once, and a literal U+FFFD is
ordinary text.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

_new_decoder = codecs.getincrementaldecoder("utf-8")

# Python's decoder waits for the third byte of a surrogate, though none is valid in UTF-8.
_SURROGATE_STARTS = frozenset(bytes([0xED, second]) for second in range(0xA0, 0xC0))


class Detokenizer:
    """The text of one sequence. Not shared: it remembers the start of an unfinished character.

    ``token_bytes`` is the table id → bytes; ``hidden`` ids (special tokens) give no text, nor does
    an id beyond the table (a model's output layer may be wider than its vocabulary).
    """

    __slots__ = ("_decoder", "_hidden", "_holds", "_whole", "token_bytes")

    def __init__(self, token_bytes: Sequence[bytes], hidden: frozenset[int] = frozenset()) -> None:
        self.token_bytes = token_bytes
        self._hidden = hidden
        self._decoder = _new_decoder("replace")
        self._holds = False
        """The start of a character waits for its end."""
        self._whole: dict[int, str] = {}
        """The texts of tokens that are whole characters, of those that were met so far."""

    def fresh(self) -> Detokenizer:
        """One for another sequence. What is known of the tokens is shared; nothing else is."""
        other = Detokenizer(self.token_bytes, self._hidden)
        other._whole = self._whole
        return other

    def whole(self, token: int) -> str | None:
        """The text of a token of whole characters that was met before, while nothing is held.
        Taking it so is feeding it. None of any other token: nothing was taken, ``feed`` is due.
        """
        return None if self._holds else self._whole.get(token)

    def feed(self, token: int) -> str:
        """The text that this token completes: may be empty, may hold an earlier token's bytes."""
        if (known := self.whole(token)) is not None:
            return known
        if token in self._hidden:
            return ""
        held, text = self._holds, self.feed_bytes(self.bytes_of(token))
        if text and not held and not self._holds:
            self._whole[token] = text
        return text

    def feed_bytes(self, data: bytes) -> str:
        """The same for a token that is known by its bytes."""
        text = self._decoder.decode(data)
        if data:
            held = self._decoder.getstate()[0] if data[-1] >= 0x80 else b""
            if held in _SURROGATE_STARTS:
                text += self.flush()
            else:
                self._holds = held != b""
        return text

    def flush(self) -> str:
        """End the sequence: an unfinished character comes out as exactly one U+FFFD."""
        self._holds = False
        return self._decoder.decode(b"", True)

    def bytes_of(self, token: int) -> bytes:
        """A token's own bytes, hidden or not; none for an id beyond the table."""
        table = self.token_bytes
        return table[token] if token < len(table) else b""

    def token_text(self, token: int) -> str:
        """A token's own text, hidden or not; part of a character shows as U+FFFD."""
        return self.bytes_of(token).decode("utf-8", "replace")
