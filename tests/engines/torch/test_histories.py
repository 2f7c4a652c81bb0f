"""Scheduler and pages against a model, over random histories; torch is not needed."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from antiphon.engines.port import Finish
from antiphon.engines.torch.pages import PAGE_SIZE, pages_for
from antiphon.engines.torch.scheduler import LEAST_PREFILL
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk, Step
from engines.torch.fake_model import (
    CONTEXT,
    EOS,
    PAGES,
    PROMPTS,
    FakeLaunch,
    FakeModel,
    a_scheduler,
    a_sequence,
    alone,
    read_on,
)

TEXTS = [[2 + at % 5 for at in range(CONTEXT)]]
TEXTS += [[*TEXTS[0][:keep], *[9] * (CONTEXT - keep)] for keep in (0, 50, 90)]
"""Prompts are beginnings of these. They share some of theirs."""


class Histories(RuleBasedStateMachine):
    """Submits, aborts and steps in any order; the model is a list of what must be true."""

    @initialize(
        max_running=st.integers(1, 6),
        max_waiting=st.integers(0, 4),
        step_tokens=st.integers(1, 64),
        depth=st.integers(1, 3),
        prefix_cache=st.sampled_from([True, True, False]),
    )
    def begin(
        self, max_running: int, max_waiting: int, step_tokens: int, depth: int, prefix_cache: bool
    ) -> None:
        self.scheduler = a_scheduler(
            max_running, max_waiting, step_tokens, prefix_cache=prefix_cache
        )
        self.model = FakeModel()
        self.depth = depth
        self.launched: deque[tuple[Step, FakeLaunch]] = deque()
        self.next_key = 0
        self.entered: list[int] = []  # who has run and is open, in the order of being let in
        self.queued: list[int] = []  # who has not run yet, by priority and arrival
        self.sequences: dict[int, Sequence] = {}
        self.said: dict[int, list[int]] = {}
        self.ended: set[int] = set()

    @rule(
        prompt=PROMPTS,
        text=st.integers(0, 3),
        salt=st.sampled_from([b"", b"", b"x"]),
        max_tokens=st.integers(0, 2 * CONTEXT),
        siblings=st.integers(1, 5),
        priority=st.sampled_from([0, 0, 0, -7, -(2**31), 3, 2**31 - 1]),
        scored=st.booleans(),
    )
    def submit(
        self,
        prompt: int,
        text: int,
        salt: bytes,
        max_tokens: int,
        siblings: int,
        priority: int,
        scored: bool,
    ) -> None:
        queue = {one.request.group for one in self.scheduler.waiting}
        idle, group = not self.open, self.next_key
        taken = []
        for _ in range(siblings):
            key, self.next_key = self.next_key, self.next_key + 1
            sequence = a_sequence(
                key,
                TEXTS[text][:prompt],
                max_tokens,
                group,
                priority,
                prompt_logprobs=0 if scored else None,
                salt=salt,
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
            at_once = group in self.scheduler.running or (idle and self.launched)
            assert at_once, "beyond the queue only those that run at once"

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
        """Schedule and launch, or book the earliest step: as the loop does at this depth."""
        oldest = self.open[0] if self.open else None
        before = {key: one.cached for key, one in self.scheduler.running.items()}
        step = self.scheduler.schedule()
        self.let_in()
        if step is not None:
            self.check_step(step, before, oldest)
            self.launched.append((step, self.model.launch(step)))
        assert step or self.launched or not self.open, "something runs"
        if self.launched and (step is None or len(self.launched) >= self.depth):
            self.book(*self.launched.popleft())

    def book(self, step: Step, launch: FakeLaunch) -> None:
        drawing = {one.key for one in step.drawing if one.key not in self.ended}
        booked = self.scheduler.book(step, launch.drawn().token)
        self.let_in()
        assert {one.key for one in booked.sequence} >= drawing
        tokens = iter(booked.token)
        rows = zip(booked.sequence, booked.n_new, booked.finish, booked.stop_id, strict=True)
        for sequence, n_new, finish, stop_id in rows:
            key = sequence.key
            assert key not in self.ended, "nothing follows the end"
            self.check_scores(sequence)
            if n_new:
                self.said[key].append(next(tokens))
            if finish:
                assert (self.said[key], finish) == alone(sequence)
                assert (finish == Finish.STOP) == (stop_id == EOS)
                self.end(key)

    def check_step(self, step: Step, before: dict[int, int], oldest: int | None) -> None:
        keys = [chunk.sequence.key for chunk in step.chunks]
        assert len(set(keys)) == len(keys)
        if not self.launched:
            assert keys[:1] == ([] if oldest is None else [oldest]), "the oldest progresses"
        assert all(key in self.scheduler.running for key in keys)
        decoding = sum(self.decodes(chunk) for chunk in step.chunks)
        prefill = step.tokens - decoding
        assert prefill <= max(self.scheduler.step_tokens - decoding, LEAST_PREFILL)
        for chunk in step.chunks:
            assert chunk.count >= 1
            assert chunk.end == chunk.sequence.cached
            assert chunk.start >= before.get(chunk.sequence.key, 0), "nothing is read twice"
            assert len(chunk.table.pages) == pages_for(chunk.end)

    def decodes(self, chunk: Chunk) -> bool:
        """Whether all but the token drawn last had been read."""
        return chunk.count == 1 and chunk.start >= len(chunk.sequence.request.prompt)

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
    def every_page_is_free_or_held_by_those_that_it_says(self) -> None:
        pool, running = self.scheduler.pool, self.scheduler.running.values()
        parting = [table for _, _, table in self.scheduler.holdings._parting]
        tables = [*(one.table for one in running), *parting]
        holders = Counter(page for table in tables for page in table.pages)
        assert [holders[page] for page in range(PAGES)] == pool._holders
        salts = [{(page, one.request.cache_salt) for page in one.table.pages} for one in running]
        assert len(set().union(*salts)) == len({page for page, _ in set().union(*salts)})
        free = [page for page in range(PAGES) if not holders[page]]
        assert sorted([*pool._blank, *pool._kept]) == free
        assert {pool._found[name]: name for name in pool._found} == pool._names
        assert set(pool._blank).isdisjoint(pool._names)
        assert set(pool._kept) <= set(pool._names)
        ended = [self.sequences[key] for key in self.ended]
        assert all(not one.table.pages for one in (*self.scheduler.waiting, *ended))
        assert all(one.cached == 0 for one in self.scheduler.waiting)

    @invariant()
    def every_slot_is_free_or_held_by_one(self) -> None:
        holdings = self.scheduler.holdings
        running = [one.slot for one in self.scheduler.running.values()]
        parting = [slot for _, slot, _ in holdings._parting]
        slots = [*running, *parting, *holdings._slots]
        assert sorted(slots) == list(range(self.scheduler.max_running))

    @invariant()
    def what_a_page_is_found_by_is_what_it_holds(self) -> None:
        cache = self.scheduler._prefixes
        if cache is None:
            return
        for sequence in self.scheduler.running.values():
            for place in range(sequence.named):
                end = (place + 1) * PAGE_SIZE
                state = 0
                for token in sequence.ids[:end]:
                    state = read_on(state, token)
                assert self.model.at(sequence.table.pages, end - 1) == state

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
        while self.launched:
            self.turn()
        assert not self.scheduler
        assert self.scheduler.pool.free == PAGES
        assert self.scheduler.holdings.free_slots == self.scheduler.max_running
        if self.scheduler._prefixes is not None:
            assert not self.scheduler._prefixes._claims
        assert self.ended == set(self.sequences)
        event(f"preemptions: {min(self.scheduler.preemptions, 5)}")


Histories.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    phases=set(Phase) - {Phase.explain},  # it takes minutes over a failing history
)
TestHistories = Histories.TestCase
