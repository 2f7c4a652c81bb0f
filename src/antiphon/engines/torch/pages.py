"""Pages of the KV pool: who holds which, and how many are promised.

A sequence is admitted only when its longest possible length fits into pages that nobody else was
promised. Pages are handed out when they are needed, so memory is touched late, and a page that a
running sequence asks for is always there: the rule cannot deadlock and needs no preemption.
"""

from __future__ import annotations

import attrs

PAGE_SIZE = 16
"""Tokens a page."""


def pages_for(tokens: int) -> int:
    """How many pages ``tokens`` tokens take."""
    return -(-tokens // PAGE_SIZE)


@attrs.define(eq=False)
class PageTable:
    """The pages of one sequence in token order, and how many it may still take."""

    promised: int
    """Pages it may hold in all."""
    pages: list[int] = attrs.field(factory=list)


class PagePool:
    """``size`` pages, numbered from 0. The page returned last is handed out first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = list(range(size - 1, -1, -1))
        self._unpromised = size

    @property
    def free(self) -> int:
        """Pages that hold nothing, promised or not."""
        return len(self._free)

    @property
    def unpromised(self) -> int:
        """Pages that a newcomer may be promised."""
        return self._unpromised

    def promise(self, tokens: int) -> PageTable | None:
        """A table that may grow to ``tokens`` tokens; None while the pool cannot promise that."""
        needed = pages_for(tokens)
        if needed > self._unpromised:
            return None
        self._unpromised -= needed
        return PageTable(needed)

    def grow(self, table: PageTable, tokens: int) -> None:
        """Give ``table`` the pages it lacks to hold ``tokens`` tokens, within its promise."""
        missing = pages_for(tokens) - len(table.pages)
        if len(table.pages) + missing > table.promised:
            raise ValueError(f"{tokens} tokens are more than the {table.promised} pages promised")
        for _ in range(missing):
            table.pages.append(self._free.pop())

    def release(self, table: PageTable) -> None:
        """Take back the pages and the promise; the table is empty afterwards."""
        self._free.extend(reversed(table.pages))
        self._unpromised += table.promised
        table.pages.clear()
        table.promised = 0
