"""How many sequences there may be at once, and when there will be room for more.

No clock: every method is told the time, in nanoseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.errors import InvalidRequest, Overloaded

SECOND_NS = 1_000_000_000
REMEMBERED = 64
"""Calls whose ends tell how fast room is made."""
LONGEST_S = 60.0
"""What a client is told at most: by then the load may be another."""


class Admission:
    """At most ``most`` sequences run and wait together; None is no limit."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._coming = 0
        self._since_ns = 0
        """From when on the ends are counted: the engine has had work since then."""
        self._ended: deque[tuple[int, int]] = deque()
        """When calls ended, and how many sequences each had."""

    def check(self, taken: int, more: int, now_ns: int, param: str = "n") -> None:
        """Whether ``more`` sequences may come to the ``taken`` ones.

        Raises ``Overloaded``, and ``InvalidRequest`` for more than there is ever room for, which
        is for ``param`` to answer for: ``n``, or a list of prompts.
        """
        if self.most is None:
            return
        if more > self.most:
            raise InvalidRequest(
                f"The request asks for {more} answers; at most {self.most} can run and wait here.",
                code="integer_above_max_value" if param == "n" else "array_above_max_length",
                param=param,
            )
        excess = taken + self._coming + more - self.most
        if excess > 0:
            raise Overloaded(wait_s=self.wait_s(excess, now_ns))

    @contextmanager
    def coming(self) -> Iterator[None]:
        """A sequence keeps a place while the block runs: its prompt is in the making."""
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1

    def began(self, taken: int, now_ns: int) -> None:
        """A call begins beside ``taken`` sequences. What was before a pause tells nothing."""
        if not taken:
            self._since_ns = now_ns
            self._ended.clear()

    def ended(self, sequences: int, now_ns: int) -> None:
        """A call of so many sequences has ended."""
        self._ended.append((now_ns, sequences))
        if len(self._ended) > REMEMBERED:
            self._since_ns, _ = self._ended.popleft()

    def wait_s(self, places: int, now_ns: int) -> float:
        """In how many seconds so many sequences will have ended, if it goes on as it did.

        Before the first has ended, all that is known is that it takes longer than it took so far.
        """
        elapsed_s = (now_ns - self._since_ns) / SECOND_NS
        count = sum(sequences for _, sequences in self._ended)
        return min(max(places * elapsed_s / max(count, 1), 1.0), LONGEST_S)
