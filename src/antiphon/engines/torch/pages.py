"""Pages of the KV pool: who holds which."""

from __future__ import annotations

import attrs

PAGE_SIZE = 16
"""Tokens a page."""


def pages_for(tokens: int) -> int:
    """How many pages ``tokens`` tokens take."""
    return -(-tokens // PAGE_SIZE)


@attrs.define(eq=False)
class PageTable:
    """The pages of one sequence, in token order."""

    pages: list[int] = attrs.field(factory=list)

    @property
    def capacity(self) -> int:
        """Tokens that the pages hold."""
        return len(self.pages) * PAGE_SIZE


class PagePool:
    """``size`` pages, numbered from 0. The page returned last is handed out first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = list(range(size - 1, -1, -1))

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def grow(self, table: PageTable, tokens: int) -> bool:
        """Give ``table`` the pages it lacks to hold ``tokens`` tokens, as far as there are any.

        False if there were too few.
        """
        while table.capacity < tokens:
            if not self._free:
                return False
            table.pages.append(self._free.pop())
        return True

    def release(self, table: PageTable) -> None:
        """Take back the pages; the table is empty afterwards."""
        self._free.extend(reversed(table.pages))
        table.pages.clear()
