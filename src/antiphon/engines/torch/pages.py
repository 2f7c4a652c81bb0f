"""Pages of the KV pool: who holds which, and which are free.

A page may be held by many sequences at once: full pages with the same beginning are shared. It is
free when nobody holds it; if it has a *name* it can be found again until it is reused. Free pages
without a name are reused first, then those that have been free for longest.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

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
    """``size`` pages, numbered from 0."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._holders = [0] * size
        self._blank = list(range(size - 1, -1, -1))
        """Free and nameless; the last is reused first."""
        self._kept: OrderedDict[int, None] = OrderedDict()
        """Free and named; the first is reused first."""
        self._names: dict[int, bytes] = {}
        self._found: dict[bytes, int] = {}

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._blank) + len(self._kept)

    @property
    def kept(self) -> int:
        """Of the free pages, those that can be found again."""
        return len(self._kept)

    def held(self, page: int) -> bool:
        """Whether a sequence holds the page."""
        return self._holders[page] > 0

    def only_held_by(self, tables: Iterable[PageTable]) -> int:
        """How many pages would be free if all of these tables were released."""
        holds = Counter(page for table in tables for page in table.pages)
        return sum(self._holders[page] == count for page, count in holds.items())

    def grow(self, table: PageTable, tokens: int) -> bool:
        """Give ``table`` the pages it lacks to hold ``tokens`` tokens, as far as there are any.

        False if there were too few. What a new page held before is no longer found.
        """
        while table.capacity < tokens:
            if self._blank:
                page = self._blank.pop()
            elif self._kept:
                page, _ = self._kept.popitem(last=False)
                del self._found[self._names.pop(page)]
            else:
                return False
            self._holders[page] = 1
            table.pages.append(page)
        return True

    def share(self, table: PageTable, page: int) -> None:
        """Let ``table`` hold a named page as its next one, with all who hold it already."""
        self._kept.pop(page, None)
        self._holders[page] += 1
        table.pages.append(page)

    def release(self, table: PageTable) -> None:
        """Take back the pages; the table is empty afterwards.

        The last comes first: of a text that is half reused, the beginning can still be found.
        """
        for page in reversed(table.pages):
            self._holders[page] -= 1
            if self._holders[page]:
                continue
            if page in self._names:
                self._kept[page] = None
            else:
                self._blank.append(page)
        table.pages.clear()

    def find(self, name: bytes) -> int | None:
        """The page of this name, if there is one."""
        return self._found.get(name)

    def name(self, page: int, name: bytes) -> bool:
        """Give a held page the name by which it is found; False if another page has it."""
        if name in self._found:
            return False
        self._found[name] = page
        self._names[page] = name
        return True
