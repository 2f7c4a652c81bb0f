"""Which ids each segment tells, where a request asked for them.

Ids are told in the order in which they were drawn, all of them: those of markers, and of what is
not shown, go with the next segment. An id belongs to the character at which its token begins, one
without text of its own to the next character. It is told with the first segment that shows that
character or a later one; so what a stop string may yet cut is not told.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from responsory.values import Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence


class TokenIds:
    """``told``: how many were told."""

    __slots__ = ("_answer", "_waiting", "told")

    def __init__(self) -> None:
        self.told = 0
        self._waiting: deque[tuple[int, tuple[int, ...]]] = deque()
        """Where tokens begin in the raw text, and their ids."""
        self._answer: deque[tuple[int, int]] = deque()
        """Where text of the answer begins, in the answer and in the raw text."""

    def __bool__(self) -> bool:
        """Some were not told yet."""
        return bool(self._waiting)

    def tell(self, ids: Sequence[int]) -> Tokens:
        """What a segment tells that shows all text of these, where none was waiting."""
        self.told += len(ids)
        return Tokens(tuple(ids), self.told)

    def add(self, start: int, ids: tuple[int, ...]) -> None:
        """Tokens that begin at ``start`` or, where that is not known of each, from there on."""
        if ids:
            self._waiting.append((start, ids))

    def answer(self, origin: int, start: int) -> None:
        """The character ``origin`` of the answer is the character ``start`` of the raw text, and so
        on."""
        self._answer.append((origin, start))

    def place(self, at: int) -> int:
        """The character ``at`` of the answer in the raw text. No earlier one is asked for again."""
        answer = self._answer
        while len(answer) > 1 and answer[1][0] <= at:
            answer.popleft()
        origin, start = answer[0]
        return start + at - origin

    def take(self, end: int) -> Tokens:
        """What a segment tells that shows the raw text up to ``end``."""
        ids: list[int] = []
        while self._waiting and self._waiting[0][0] < end:
            ids += self._waiting.popleft()[1]
        return self.tell(ids)

    def cut(self, end: int) -> None:
        """Nothing from ``end`` on was wanted."""
        while self._waiting and self._waiting[-1][0] >= end:
            self._waiting.pop()

    def rest(self) -> tuple[int, ...]:
        """Those that no segment told."""
        return tuple([token for _, ids in self._waiting for token in ids])
