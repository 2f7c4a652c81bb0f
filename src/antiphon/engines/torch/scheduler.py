"""Which sequences run in a step, and how many tokens of each (pure Python, no torch).

Every step has one token budget: running decodes first, one token each, then prompts in the order
in which they were let in, cut to what is left. So a stream never waits for a long prompt for more
than one step, and neither does an abort.

The queue is in order of priority, the lower number first, and of arrival among equals; so the
siblings of a call stay side by side. Priority decides who is let in and nothing more: what runs is
never put back for a newcomer, however urgent, and a full queue refuses all alike.

Pages are taken when a step needs them; nothing is reserved. A sequence that finds none takes those
of one that was let in later, the latest first (**preemption by recompute**): that one goes back to
the head of the queue, whatever waits there, and is read again later, its output so far included.
Draws depend on seed and position alone, so it goes on as if nothing had been. The oldest running
sequence is never preempted, and any sequence fits the pool alone; so the oldest always progresses,
and everything that is let in ends. "Older" and "newer" are said of the moment of being let in.

A step may be scheduled before the one before it is booked: where the next token goes is known
without the token. What a launched step may still touch comes back when it is booked
(``holdings``), and what it draws for a sequence that has ended meanwhile is dropped.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Container
from collections.abc import Sequence as Rows
from math import inf

from antiphon.engines.port import Finish
from antiphon.engines.torch.holdings import Holdings
from antiphon.engines.torch.pages import PagePool, pages_for
from antiphon.engines.torch.prefix_cache import PrefixCache
from antiphon.engines.torch.sequence import NO_SLOT, Sequence
from antiphon.engines.torch.step import Booked, Chunk, Step

LEAST_PREFILL = 16
"""Prompt tokens a step takes however many sequences decode, so that prompts never starve."""


class Scheduler:
    """The queue and the running set. Everything it admits ends by ``book`` or ``remove``.

    ``max_waiting`` bounds the queue in calls (sequences that share a ``group``, added one after
    another): a call is taken or refused as its first sequence is. All sequences must fit the pool
    alone.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        max_running: int,
        max_waiting: int,
        step_tokens: int,
        prefix_cache: bool = True,
    ) -> None:
        self.pool = pool
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.step_tokens = step_tokens
        self.waiting: deque[Sequence] = deque()
        """Those that have run before, the oldest first; then by priority and arrival."""
        self.running: dict[int, Sequence] = {}
        """By key, the oldest first."""
        self.preemptions = 0
        self.launched = 0
        """The number of the latest step."""
        self.holdings = Holdings(pool, max_running)
        self._prefixes = PrefixCache(pool) if prefix_cache else None
        self._open: dict[int, Sequence] = {}
        self._turns = 0
        self._spare: int | None = None
        """Pages that a newcomer may have; None: to be counted again."""
        self._latest_call: tuple[int, bool] | None = None
        """The group of the latest sequence, and whether its call is taken."""

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, key: int) -> bool:
        return key in self._open

    @property
    def in_flight(self) -> bool:
        """Whether a step is launched and not booked."""
        return self.launched > self.holdings.booked

    def add(self, sequence: Sequence) -> bool:
        """Queue a sequence, or run it if there is room; False if its call is refused."""
        group = sequence.request.group
        if self._latest_call is None or self._latest_call[0] != group:
            waiting = {queued.request.group for queued in self.waiting}
            first = not self.waiting or _rank(sequence) < _rank(self.waiting[0])
            at_once = first and self._has_room_for(sequence)
            # Nobody is open, but a step in flight may still have the slots of those that were.
            idle = not self._open
            room = at_once or idle or len(waiting) < self.max_waiting
            self._latest_call = (group, room)
        if not self._latest_call[1]:
            return False
        self._open[sequence.key] = sequence
        insort(self.waiting, sequence, key=_rank)
        self.admit()
        return True

    def remove(self, key: int) -> Sequence | None:
        """Take out an open sequence and its pages; None if there is none of this key."""
        sequence = self._open.get(key)
        if sequence is not None:
            self._end(sequence)
        return sequence

    def open_keys(self) -> list[int]:
        """The keys of all open sequences, the running ones first."""
        return [*self.running, *(queued.key for queued in self.waiting)]

    def schedule(self) -> Step | None:
        """The next step, with pages to write it to; it counts as launched.

        None if nothing can run: nothing is open, or all wait for a step in flight to be booked.
        """
        self.admit()
        number = self.launched + 1
        decodes = {key for key, one in self.running.items() if one.decoding}
        budget = max(self.step_tokens - len(decodes), LEAST_PREFILL)
        chunks = []
        for key, sequence in list(self.running.items()):
            if sequence.slot == NO_SLOT:
                break  # preempted by an older one, as are all that follow
            wanted = 1 if key in decodes else min(self._unread(sequence), budget)
            count = self._make_room(sequence, wanted) if wanted else 0
            if count > 0:
                chunk = Chunk(sequence, sequence.cached, count)
                sequence.cached += count
                sequence.in_flight += chunk.draws
                sequence.last_step = number
                chunks.append(chunk)
                budget -= 0 if key in decodes else count
        self._spare = None
        if not chunks:
            if self._open and not self.in_flight:
                raise RuntimeError("nothing of what is open can run")
            return None
        self.launched = number
        return Step(number, chunks)

    def book(self, step: Step, tokens: Rows[int], refused: Container[int] = ()) -> Booked:
        """Record a step that ran, the earliest that is not booked yet.

        ``tokens`` has an id for every chunk that draws, in their order; ``refused`` are the places
        in it where nothing could be drawn. Sequences that end by it have left.
        """
        self.holdings.book(step.number)
        self._spare = None
        booked = Booked()
        draw = -1
        for chunk in step.chunks:
            sequence = chunk.sequence
            if chunk.draws:
                draw += 1
                sequence.in_flight -= 1
            if sequence.ended:
                continue
            has_its_pages = chunk.table is sequence.table
            if self._prefixes is not None and has_its_pages:
                self._prefixes.book(sequence, chunk.end)
            if chunk.draws:
                if draw in refused:
                    booked.refused[len(booked.sequence)] = draw
                    booked.end(sequence, Finish.ERROR)
                else:
                    booked.extend(sequence, tokens[draw], draw)
            elif sequence.max_tokens == 0 and has_its_pages and chunk.end == sequence.length:
                booked.end(sequence, Finish.LENGTH)
            else:
                continue
            if booked.finish[-1]:
                self._end(sequence)
        self.admit()
        return booked

    def admit(self) -> None:
        """Let in those that wait, the first of them first, while slots and pages last."""
        while self.waiting and self._has_room_for(self.waiting[0]):
            sequence = self.waiting.popleft()
            self.holdings.enter(sequence)
            self._turns += 1
            sequence.turn, sequence.admitted = self._turns, True
            self.running[sequence.key] = sequence
            free = self.pool.free
            if self._prefixes is not None:
                self._prefixes.join(sequence)
            if self._spare is not None:
                self._spare -= free - self.pool.free + sequence.lacking + 1

    def _has_room_for(self, sequence: Sequence) -> bool:
        """Whether there is a slot, and pages for what the sequence has to read."""
        if not self.holdings.free_slots or self.holdings.in_flight(sequence):
            return False
        if not self.running:
            return True
        if self._spare is None:
            # What the others need for their own reading is as good as taken. A page more for each,
            # or the newcomer might lose its own before it has come to anything.
            needed = sum(one.lacking + 1 for one in self.running.values())
            self._spare = self.pool.free - needed
        lacking = sequence.lacking
        if lacking > self._spare and self._prefixes is not None:
            lacking -= sum(self.pool.held(page) for page in self._prefixes.hits(sequence))
        return lacking <= self._spare

    def _unread(self, sequence: Sequence) -> int:
        """How much of its text it is to read itself; 0 while another reads it for both."""
        if self._prefixes is not None:
            self._prefixes.join(sequence)
            if self._prefixes.waits(sequence):
                return 0
        return sequence.pending

    def _make_room(self, sequence: Sequence, wanted: int) -> int:
        """Give it pages for ``wanted`` more tokens, at the expense of newer sequences.

        How many tokens it has room for: fewer only if it is the newest or pages are about to come
        back, and 0 if it has to stand still until then.
        """
        end, table = sequence.cached + wanted, sequence.table
        while not self.pool.grow(table, end):
            newest = next(reversed(self.running.values()))
            missing = pages_for(end) - len(table.pages)
            if newest is sequence or self.holdings.returning >= missing:
                return min(wanted, table.capacity - sequence.cached)
            self._preempt(newest)
        return wanted

    def _preempt(self, sequence: Sequence) -> None:
        """Back to the head of the queue: nobody who waits was let in before it."""
        self._leave(sequence)
        sequence.cached = 0
        sequence.preempted = True
        self.waiting.appendleft(sequence)
        self.preemptions += 1

    def _end(self, sequence: Sequence) -> None:
        """It is over, whether it runs or waits."""
        sequence.ended = True
        del self._open[sequence.key]
        if sequence.slot == NO_SLOT:
            self.waiting.remove(sequence)
        else:
            self._leave(sequence)

    def _leave(self, sequence: Sequence) -> None:
        del self.running[sequence.key]
        self._spare = None
        if self._prefixes is not None:
            self._prefixes.leave(sequence)
        self.holdings.leave(sequence)


def _rank(sequence: Sequence) -> float:
    """The lower, the sooner it is let in."""
    return -inf if sequence.admitted else sequence.request.priority
