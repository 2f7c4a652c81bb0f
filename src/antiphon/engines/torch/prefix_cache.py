"""Full pages that hold the same text are read once (pure Python, no torch).

The name of a full page is a hash of its 16 ids, of the name of the page before it and of the
request's salt: so it stands for all of the text up to its end. A page is named when the step that
filled it is booked. Whoever reads a text takes the named pages it begins with and reads the rest;
the last token is always read, because its logits are wanted. A hit compares the ids as well.

Several may come with the same text before it has been read: the siblings of a call do. The first
*claims* the pages it is going to fill; the others wait for it, page by page as it names them. They
wait for older ones only, and the oldest waits for nobody; if it goes, the next one claims the rest.
"""

from __future__ import annotations

from hashlib import blake2b

from antiphon.engines.torch.pages import PAGE_SIZE, PagePool
from antiphon.engines.torch.sequence import Sequence


class PrefixCache:
    """Finds, claims and names the pages of a pool."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._content: dict[int, bytes] = {}
        """page -> what it was named for; stale where the pool has taken the name away."""
        self._claims: dict[bytes, Sequence] = {}
        """name -> who is going to fill a page of that name."""

    def hits(self, sequence: Sequence) -> list[int]:
        """The pages it could take now, in order.

        None while it scores its prompt, nor in the middle of a page.
        """
        table = sequence.table
        at = len(table.pages)
        if sequence.scores is not None or at * PAGE_SIZE != sequence.cached:
            return []
        pages = []
        for place in range(at, (len(sequence.ids) - 1) // PAGE_SIZE):
            page = self._pool.find(_name(sequence, place))
            if page is None or self._content[page] != _content(sequence, place):
                break
            pages.append(page)
        return pages

    def join(self, sequence: Sequence) -> None:
        """Take all pages that hit. A sequence that has run before had them paid by itself."""
        pages = self.hits(sequence)
        for page in pages:
            self._pool.share(sequence.table, page)
        read = len(pages) * PAGE_SIZE
        sequence.cached += read
        sequence.named += len(pages)
        if not sequence.preempted:
            sequence.hits += read

    def waits(self, sequence: Sequence) -> bool:
        """Whether an older one is about to fill its next page; if not, it claims that itself."""
        at, rest = divmod(sequence.cached, PAGE_SIZE)
        full = len(sequence.ids) // PAGE_SIZE
        if rest or at >= full:
            return False
        scores = sequence.scores is not None
        if self._claimed(sequence, at) and not scores:
            return at < (len(sequence.ids) - 1) // PAGE_SIZE
        if self._claims.get(_name(sequence, at)) is not sequence:
            for place in range(at, full):
                if not self._claimed(sequence, place):
                    self._claims[_name(sequence, place)] = sequence
        return False

    def book(self, sequence: Sequence, read: int) -> None:
        """Name the pages that are full now that its first ``read`` tokens have been read."""
        for place in range(sequence.named, read // PAGE_SIZE):
            name, page = _name(sequence, place), sequence.table.pages[place]
            if self._pool.name(page, name):
                self._content[page] = _content(sequence, place)
            self._claims.pop(name, None)
            sequence.named += 1

    def leave(self, sequence: Sequence) -> None:
        """Give up its claims: it fills no more pages, at least for now."""
        sequence.named = 0
        if self._claims:
            for name in sequence.names:
                if self._claims.get(name) is sequence:
                    del self._claims[name]

    def _claimed(self, sequence: Sequence, place: int) -> bool:
        """By an older one."""
        owner = self._claims.get(_name(sequence, place))
        return owner is not None and owner.turn < sequence.turn


def _name(sequence: Sequence, place: int) -> bytes:
    """The name of a full page, by its place in the text."""
    names = sequence.names
    while len(names) <= place:
        parent = names[-1] if names else b""
        content = _content(sequence, len(names))
        names.append(blake2b(parent + content, digest_size=16).digest())
    return names[place]


def _content(sequence: Sequence, place: int) -> bytes:
    """16 ids of 4 bytes, and the salt."""
    ids = sequence.ids[place * PAGE_SIZE : (place + 1) * PAGE_SIZE]
    return ids.tobytes() + sequence.request.cache_salt
