"""What a reasoning model writes before its answer, which is held to nothing.

Markers are texts, and a token may hold more or less than one. The bytes say where a marker ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_SPACES = 2
"""Tokens of white space behind the closer, which belong to it: models are used to a blank line."""

_SPACES = (b"\n", b"\n\n", b" ")


class Thought:
    """Reasoning between markers, if the text begins with it.

    ``opener`` is what the text may begin with; empty if the prompt has opened the reasoning.
    ``closer`` ends it. ``ids`` is bytes → id of the vocabulary. After ``budget`` tokens between the
    two, if that is not None, ``closing`` must come: the closer as tokens.
    """

    def __init__(
        self,
        opener: bytes,
        closer: bytes,
        ids: Mapping[bytes, int],
        *,
        budget: int | None = None,
        closing: Sequence[int] = (),
    ) -> None:
        self._opener = opener
        self._closer = closer
        self._ids = ids
        self._budget = budget
        self._closing = closing
        self._forced = 0
        """Tokens of the closer that were forced so far."""
        self._read = b""
        self._opened = not opener
        self.closed = False
        """Whether its end has come."""
        self._spaces = 0
        self.over = False
        """Whether the answer has begun: the form holds from here on."""

    @property
    def besides(self) -> list[int]:
        """Tokens that may be drawn beside those that the answer can begin with."""
        spelt: tuple[bytes, ...] = ()
        if self.closed:
            spelt = _SPACES if self._spaces < MOST_SPACES else ()
        elif not self._opened:
            rest = self._opener[len(self._read) :]
            # A marker that is one token is written as one; nothing else is likely to begin it.
            starts = tuple(rest[:end] for end in range(1, len(rest) + 1))
            spelt = (rest,) if rest in self._ids else starts
        return [self._ids[one] for one in spelt if one in self._ids]

    @property
    def begun(self) -> bool:
        """Whether a part of the opener has been written, so that no answer can begin here."""
        return not self._opened and bool(self._read)

    @property
    def free(self) -> bool:
        """Whether the thought goes on: any token may be drawn, unless its end is forced."""
        return self._opened and not self.closed

    @property
    def forced(self) -> int | None:
        """The one token that may come, where the budget is spent."""
        if self._budget is None or not self.free or self._budget > 0:
            return None
        return self._closing[self._forced] if self._forced < len(self._closing) else None

    def take(self, spelt: bytes) -> bytes | None:
        """Take a token's bytes. What of them belongs to the answer; None if the token is the
        thought's alone."""
        if self.closed:
            if not spelt.strip() and self._spaces < MOST_SPACES:
                self._spaces += 1
                return None
            self.over = True
            return spelt
        read = self._read + spelt
        if not self._opened:
            if not self._opener.startswith(read):
                self.over = True
                return spelt
            self._opened = read == self._opener
            self._read = b"" if self._opened else read
            return None
        if self.forced is not None:
            self._forced += 1
        elif self._budget is not None:
            self._budget -= 1
        _, closer, answer = read.partition(self._closer)
        self.closed = bool(closer)
        self._read = read[-len(self._closer) :]
        self.over = bool(answer.strip())
        # White space that touches a marker belongs to it.
        return answer.lstrip() or None
