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
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from math import inf

import attrs

from antiphon.engines.port import NO_STOP_ID, Finish
from antiphon.engines.torch.pages import PagePool
from antiphon.engines.torch.sequence import Sequence

LEAST_PREFILL = 16
"""Prompt tokens a step takes however many sequences decode, so that prompts never starve."""


@attrs.define(eq=False)
class Chunk:
    """``count`` tokens of a sequence to read in this step, from ``start`` on."""

    sequence: Sequence
    start: int
    count: int

    @property
    def draws(self) -> bool:
        """Whether the step gives the sequence a new token."""
        at_the_end = self.start + self.count == len(self.sequence.ids)
        return at_the_end and self.sequence.max_tokens > 0

    @property
    def scored(self) -> range:
        """Its positions that predict a prompt token whose logprob is wanted and not yet known.

        They are read in order and never skipped, so the first of them is the next to score.
        """
        scores = self.sequence.scores
        if scores is None:
            return range(0)
        last = len(self.sequence.request.prompt) - 1  # it predicts the first token of the output
        return range(max(self.start, scores.done), min(self.start + self.count, last))


@attrs.define(eq=False)
class Outcome:
    """What a step did to one sequence."""

    sequence: Sequence
    token: int | None = None
    """The new token of the output; None on the id that stopped it."""
    finish: Finish = Finish.NONE
    stop_id: int = NO_STOP_ID


class Scheduler:
    """The queue and the running set. Everything it admits ends by ``book`` or ``remove``.

    ``max_waiting`` bounds the queue in calls (sequences that share a ``group``, added one after
    another): a call is taken or refused as its first sequence is. All sequences must fit the pool
    alone.
    """

    def __init__(
        self, pool: PagePool, *, max_running: int, max_waiting: int, step_tokens: int
    ) -> None:
        self.pool = pool
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.step_tokens = step_tokens
        self.waiting: deque[Sequence] = deque()
        """Those that have run before, the oldest first; then by priority and arrival."""
        self.running: dict[int, Sequence] = {}
        self.preemptions = 0
        self._latest_call: tuple[int, bool] | None = None
        """The group of the latest sequence, and whether its call is taken."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.running)

    def __contains__(self, key: int) -> bool:
        return key in self.running or any(queued.key == key for queued in self.waiting)

    def add(self, sequence: Sequence) -> bool:
        """Queue a sequence, or run it if there is room; False if its call is refused."""
        group = sequence.request.group
        if self._latest_call is None or self._latest_call[0] != group:
            waiting = {queued.request.group for queued in self.waiting}
            first = not self.waiting or _rank(sequence) < _rank(self.waiting[0])
            at_once = first and self._has_room_for(sequence)
            room = at_once or len(waiting) < self.max_waiting
            self._latest_call = (group, room)
        if not self._latest_call[1]:
            return False
        insort(self.waiting, sequence, key=_rank)
        self.admit()
        return True

    def remove(self, key: int) -> Sequence | None:
        """Take out an open sequence and its pages; None if there is none of this key."""
        sequence = self.running.get(key)
        if sequence is not None:
            self._release(sequence)
            return sequence
        for queued in self.waiting:
            if queued.key == key:
                self.waiting.remove(queued)
                return queued
        return None

    def open_keys(self) -> list[int]:
        """The keys of all open sequences, the running ones first."""
        return [*self.running, *(queued.key for queued in self.waiting)]

    def schedule(self) -> list[Chunk]:
        """The chunks of the next step, with pages to write them to; empty if nothing is open."""
        self.admit()
        decoding = sum(one.decoding for one in self.running.values())
        budget = max(self.step_tokens - decoding, LEAST_PREFILL)
        chunks = []
        for sequence in list(self.running.values()):
            if sequence.key not in self.running:
                break  # preempted by an older one, as are all that follow
            wanted = 1 if sequence.decoding else min(sequence.pending, budget)
            count = self._make_room(sequence, wanted)
            if count > 0:
                chunks.append(Chunk(sequence, sequence.cached, count))
                budget -= 0 if sequence.decoding else count
        return chunks

    def book(self, chunks: list[Chunk], drawn: Mapping[int, int]) -> list[Outcome]:
        """Record a step that ran: ``drawn`` is key -> id for every chunk that draws.

        Gives an outcome for every sequence with a new token or an end; the ended ones have left.
        """
        outcomes = []
        for chunk in chunks:
            sequence = chunk.sequence
            draws = chunk.draws
            sequence.cached = chunk.start + chunk.count
            if draws:
                outcome = _extend(sequence, drawn[sequence.key])
            elif sequence.pending == 0:
                outcome = Outcome(sequence, finish=Finish.LENGTH)
            else:
                continue
            if outcome.finish:
                self._release(sequence)
            outcomes.append(outcome)
        self.admit()
        return outcomes

    def admit(self) -> None:
        """Let in those that wait, the first of them first, while slots and pages last."""
        while self.waiting and self._has_room_for(self.waiting[0]):
            sequence = self.waiting.popleft()
            sequence.admitted = True
            self.running[sequence.key] = sequence

    def _has_room_for(self, sequence: Sequence) -> bool:
        """Whether there is a slot, and pages for what the sequence has to read."""
        running = self.running.values()
        if not running:
            return True
        # What the others need for their own reading is as good as taken. A page more for each, or
        # the newcomer might lose its own before it has come to anything.
        spare = self.pool.free - sum(one.lacking + 1 for one in running)
        return len(running) < self.max_running and sequence.lacking <= spare

    def _make_room(self, sequence: Sequence, wanted: int) -> int:
        """Give it pages for ``wanted`` more tokens, at the expense of newer sequences.

        How many tokens it has room for: fewer only if it is the newest, and 0 if it has to stand
        still until others end.
        """
        end = sequence.cached + wanted
        while not self.pool.grow(sequence.table, end):
            newest = next(reversed(self.running.values()))
            if newest is sequence:
                return sequence.table.capacity - sequence.cached
            self._preempt(newest)
        return wanted

    def _preempt(self, sequence: Sequence) -> None:
        """Back to the head of the queue: nobody who waits was let in before it."""
        self._release(sequence)
        sequence.cached = 0
        self.waiting.appendleft(sequence)
        self.preemptions += 1

    def _release(self, sequence: Sequence) -> None:
        del self.running[sequence.key]
        self.pool.release(sequence.table)


def _rank(sequence: Sequence) -> float:
    """The lower, the sooner it is let in."""
    return -inf if sequence.admitted else sequence.request.priority


def _extend(sequence: Sequence, token: int) -> Outcome:
    """Append a drawn id, or end the sequence on it."""
    if token in sequence.stopping_ids:
        return Outcome(sequence, finish=Finish.STOP, stop_id=token)
    sequence.ids.append(token)
    full = sequence.drawn >= sequence.max_tokens
    return Outcome(sequence, token, finish=Finish.LENGTH if full else Finish.NONE)
