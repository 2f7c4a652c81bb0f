"""What a reasoning model writes before its answer, which is held to nothing.

Markers are texts, and a token may hold more or less than one. The bytes say where a marker ends.
"""

from __future__ import annotations

from collections.abc import Mapping


class Thought:
    """Reasoning between markers, if the text begins with it.

    ``opener`` is what the text may begin with; empty if the prompt has opened the reasoning.
    ``closer`` ends it. ``ids`` is bytes → id of the vocabulary.
    """

    def __init__(self, opener: bytes, closer: bytes, ids: Mapping[bytes, int]) -> None:
        self._opener = opener
        self._closer = closer
        self._ids = ids
        self._opened = not opener
        self._read = b""
        self.over = False
        """Whether the answer has begun: the form holds from here on."""

    @property
    def opening(self) -> list[int]:
        """Tokens that begin the opener, or go on with it; they may be drawn beside the answer's."""
        if self._opened or self.over:
            return []
        rest = self._opener[len(self._read) :]
        ends = range(1, len(rest) + 1)
        return [self._ids[rest[:end]] for end in ends if rest[:end] in self._ids]

    @property
    def begun(self) -> bool:
        """Whether a part of the opener has been written, so that no answer can begin here."""
        return not self._opened and bool(self._read)

    @property
    def free(self) -> bool:
        """Whether any token may be drawn that does not end the text."""
        return self._opened and not self.over

    def take(self, spelt: bytes) -> bytes | None:
        """Take a token's bytes. What of them belongs to the answer; None if the token is the
        thought's alone."""
        if not self._opened:
            read = self._read + spelt
            if not self._opener.startswith(read):
                self.over = True
                return spelt
            self._read = read
            if read == self._opener:
                self._opened, self._read = True, b""
            return None
        read = self._read + spelt
        _, closed, answer = read.partition(self._closer)
        if not closed:
            self._read = read[-len(self._closer) :]
            return None
        self.over = True
        # White space that touches a marker belongs to it.
        return answer.lstrip() or None
