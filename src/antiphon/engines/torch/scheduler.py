"""Which sequences run in a step, and how many tokens of each (pure Python, no torch).

Every step has one token budget: running decodes first, one token each, then waiting prompts in
order of arrival, cut to what is left. So a stream never waits for a long prompt for more than one
step, and neither does an abort.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

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


@attrs.define(eq=False)
class Outcome:
    """What a step did to one sequence."""

    sequence: Sequence
    token: int | None = None
    """The new token of the output; None on the id that stopped it."""
    finish: Finish = Finish.NONE
    stop_id: int = NO_STOP_ID


class Scheduler:
    """The queue and the running set. Everything it admits ends by ``book`` or ``remove``."""

    def __init__(
        self, pool: PagePool, *, max_running: int, max_waiting: int, step_tokens: int
    ) -> None:
        self.pool = pool
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.step_tokens = step_tokens
        self.waiting: deque[Sequence] = deque()
        self.running: dict[int, Sequence] = {}

    def __len__(self) -> int:
        return len(self.waiting) + len(self.running)

    def __contains__(self, key: int) -> bool:
        return key in self.running or any(queued.key == key for queued in self.waiting)

    def add(self, sequence: Sequence) -> bool:
        """Queue a sequence, or run it if there is room; False if the queue is full."""
        self.waiting.append(sequence)
        self._admit()
        if len(self.waiting) > self.max_waiting:
            self.waiting.pop()
            return False
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
        self._admit()
        decoding = [one for one in self.running.values() if one.drawn]
        chunks = [Chunk(sequence, sequence.cached, 1) for sequence in decoding]
        budget = max(self.step_tokens - len(decoding), LEAST_PREFILL)
        for sequence in self.running.values():
            if not sequence.drawn and budget > 0:
                count = min(sequence.pending, budget)
                chunks.append(Chunk(sequence, sequence.cached, count))
                budget -= count
        for chunk in chunks:
            if chunk.sequence.table is not None:
                self.pool.grow(chunk.sequence.table, chunk.start + chunk.count)
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
        return outcomes

    def _admit(self) -> None:
        """Move waiting sequences, oldest first, to the running set while slots and pages last."""
        while self.waiting and len(self.running) < self.max_running:
            table = self.pool.promise(self.waiting[0].longest)
            if table is None:
                return
            sequence = self.waiting.popleft()
            sequence.table = table
            self.running[sequence.key] = sequence

    def _release(self, sequence: Sequence) -> None:
        del self.running[sequence.key]
        if sequence.table is not None:
            self.pool.release(sequence.table)
            sequence.table = None


def _extend(sequence: Sequence, token: int) -> Outcome:
    """Append a drawn id, or end the sequence on it."""
    if token in sequence.stopping_ids:
        return Outcome(sequence, finish=Finish.STOP, stop_id=token)
    sequence.ids.append(token)
    full = sequence.drawn >= sequence.max_tokens
    return Outcome(sequence, token, finish=Finish.LENGTH if full else Finish.NONE)
