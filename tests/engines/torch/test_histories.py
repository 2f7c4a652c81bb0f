"""Scheduler and pages against a model, over random histories; torch is not needed."""

from __future__ import annotations

from hypothesis import Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from antiphon.engines.port import Finish
from antiphon.engines.torch.pages import pages_for
from antiphon.engines.torch.scheduler import LEAST_PREFILL, Chunk
from antiphon.engines.torch.sequence import Sequence
from engines.torch.fake_model import (
    CONTEXT,
    EOS,
    PAGES,
    PROMPTS,
    FakeModel,
    a_scheduler,
    a_sequence,
)


class Histories(RuleBasedStateMachine):
    """Submits, aborts and steps in any order; the model is a list of what must be true."""

    @initialize(
        max_running=st.integers(1, 6), max_waiting=st.integers(0, 4), step_tokens=st.integers(1, 64)
    )
    def begin(self, max_running: int, max_waiting: int, step_tokens: int) -> None:
        self.scheduler = a_scheduler(max_running, max_waiting, step_tokens)
        self.model = FakeModel()
        self.next_key = 0
        self.entered: list[int] = []  # who has run and is open, in the order of being let in
        self.queued: list[int] = []  # who has not run yet, by priority and arrival
        self.sequences: dict[int, Sequence] = {}
        self.said: dict[int, list[int]] = {}
        self.ended: set[int] = set()

    @rule(
        prompt=PROMPTS,
        max_tokens=st.integers(0, 2 * CONTEXT),
        siblings=st.integers(1, 5),
        priority=st.sampled_from([0, 0, 0, -7, -(2**31), 3, 2**31 - 1]),
        scored=st.booleans(),
    )
    def submit(
        self, prompt: int, max_tokens: int, siblings: int, priority: int, scored: bool
    ) -> None:
        queue = {one.request.group for one in self.scheduler.waiting}
        idle, group = not self.open, self.next_key
        taken = []
        for _ in range(siblings):
            key, self.next_key = self.next_key, self.next_key + 1
            sequence = a_sequence(
                key, prompt, max_tokens, group, priority, prompt_logprobs=0 if scored else None
            )
            taken.append(self.scheduler.add(sequence))
            if taken[-1]:
                self.sequences[key], self.said[key] = sequence, []
                self.queued.append(key)
                self.queued.sort(key=lambda one: (self.sequences[one].request.priority, one))
                self.let_in()
            assert (key in self.scheduler) == taken[-1]
        assert len(set(taken)) == 1, "a call is taken whole or refused whole"
        assert taken[0] or not idle, "an idle engine refuses nobody"
        assert taken[0] or len(queue) >= self.scheduler.max_waiting
        if taken[0] and len(queue) >= self.scheduler.max_waiting:
            assert group in self.scheduler.running, "beyond the queue only those that run at once"

    @property
    def open(self) -> list[int]:
        """All that is open, in the order in which it is served."""
        return self.entered + self.queued

    def let_in(self) -> None:
        """Note who has begun to run: always those that were next."""
        new = [key for key in self.scheduler.running if key not in self.entered]
        assert new == self.queued[: len(new)], "the urgent first, then the earlier"
        self.entered += new
        del self.queued[: len(new)]

    @rule(place=st.integers(0, 12))
    def abort(self, place: int) -> None:
        key = self.open[place] if place < len(self.open) else self.next_key
        removed = self.scheduler.remove(key)
        assert (removed is not None) == (key in self.open)
        if removed is not None:
            self.end(key)

    @rule(steps=st.integers(1, 60))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self.turn()

    def turn(self) -> None:
        oldest = self.open[0] if self.open else None
        chunks = self.scheduler.schedule()
        self.let_in()
        self.check_chunks(chunks, oldest)
        drawn = self.model.run(chunks)
        outcomes = self.scheduler.book(chunks, drawn)
        self.let_in()
        assert {one.sequence.key for one in outcomes} >= set(drawn)
        for outcome in outcomes:
            key = outcome.sequence.key
            self.check_scores(outcome.sequence)
            if outcome.token is not None:
                self.said[key].append(outcome.token)
            if outcome.finish:
                assert (self.said[key], outcome.finish) == self.model.output(outcome.sequence)
                assert (outcome.finish is Finish.STOP) == (outcome.stop_id == EOS)
                self.end(key)

    def check_chunks(self, chunks: list[Chunk], oldest: int | None) -> None:
        keys = [chunk.sequence.key for chunk in chunks]
        assert len(set(keys)) == len(keys)
        assert keys[:1] == ([] if oldest is None else [oldest]), "the oldest progresses"
        assert all(key in self.scheduler.running for key in keys)
        decoding = sum(chunk.sequence.decoding for chunk in chunks)
        prefill = sum(chunk.count for chunk in chunks) - decoding
        assert prefill <= max(self.scheduler.step_tokens - decoding, LEAST_PREFILL)
        for chunk in chunks:
            assert chunk.start == chunk.sequence.cached
            assert chunk.count >= 1
            assert len(chunk.sequence.table.pages) == pages_for(chunk.start + chunk.count)

    def check_scores(self, sequence: Sequence) -> None:
        """Whoever has an outcome has read its prompt, each position once, whatever came between."""
        if sequence.scores is not None:
            scored = sequence.scores.block().logprob
            assert list(scored) == list(range(len(sequence.request.prompt) - 1))
            sequence.scores = None  # sent; a later reading of the prompt scores nothing

    def end(self, key: int) -> None:
        assert key not in self.ended, "one terminal each"
        self.ended.add(key)
        (self.entered if key in self.entered else self.queued).remove(key)

    @invariant()
    def pages_are_owned_once(self) -> None:
        pool, running = self.scheduler.pool, self.scheduler.running.values()
        owned = [page for one in running for page in one.table.pages]
        assert sorted(owned + pool._free) == list(range(PAGES))
        ended = [self.sequences[key] for key in self.ended]
        assert all(not one.table.pages for one in (*self.scheduler.waiting, *ended))
        assert all(one.cached == 0 for one in self.scheduler.waiting)

    @invariant()
    def who_ran_comes_first_then_the_urgent_then_the_earlier(self) -> None:
        assert self.scheduler.open_keys() == self.open
        assert len(self.scheduler.running) <= self.scheduler.max_running

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for _ in range(len(self.open) * 2 * CONTEXT + 1):
            if not self.open:
                break
            self.turn()
        assert not self.open
        assert not self.scheduler
        assert self.scheduler.pool.free == PAGES
        assert self.ended == set(self.sequences)
        event(f"preemptions: {min(self.scheduler.preemptions, 5)}")


Histories.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    phases=set(Phase) - {Phase.explain},  # it takes minutes over a failing history
)
TestHistories = Histories.TestCase
