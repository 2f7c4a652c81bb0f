"""Scheduler and pages against a model, over random histories; torch is not needed."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Sequence as Rows

import attrs
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from antiphon.engines.port import EngineRequest, Finish
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool, PageTable, pages_for
from antiphon.engines.torch.scheduler import LEAST_PREFILL, Chunk, Scheduler
from antiphon.engines.torch.sequence import Sequence

PAGES = 12
CONTEXT = PAGES * PAGE_SIZE
EOS, WORD = 0, 1
MANY_STEPS = 20_000
PROMPTS = st.integers(1, 40) | st.integers(1, CONTEXT - 1)
"""Mostly short ones, so that the pool runs out by what is said and not by what is asked."""


def a_sequence(
    key: int,
    prompt: int,
    max_tokens: int,
    group: int | None = None,
    priority: int = 0,
    prompt_logprobs: int | None = None,
) -> Sequence:
    request = EngineRequest(
        key=key,
        id=f"{key}-0",
        group=key if group is None else group,
        model="m",
        prompt=array("I", [WORD] * prompt),
        max_tokens=max_tokens,
        priority=priority,
        prompt_logprobs=prompt_logprobs,
    )
    return Sequence.of(request, CONTEXT, frozenset({EOS}))


def a_scheduler(
    max_running: int = 4, max_waiting: int = 5, step_tokens: int = 24, pages: int = PAGES
) -> Scheduler:
    return Scheduler(
        PagePool(pages), max_running=max_running, max_waiting=max_waiting, step_tokens=step_tokens
    )


@attrs.define
class FakeModel:
    """Draws by key and position alone, as a seed does, and remembers what is in every page.

    It fails on a step that would read another sequence's tokens, or any that were never written.
    """

    written: dict[int, tuple[int, int, int]] = attrs.field(factory=dict)
    """slot -> (key, position, id)"""
    words: int = 300
    """About one draw in so many is ``EOS``."""

    def token(self, key: int, position: int) -> int:
        """1 and above are words, different ones at different places."""
        mixed = (key * 7_919 + position * 104_729 + 12_345) * 2_654_435_761 % 2**32
        return EOS if mixed % self.words == 0 else 1 + mixed % 1_000

    def run(self, chunks: Rows[Chunk]) -> dict[int, int]:
        """The token of every chunk that draws."""
        for chunk in chunks:
            sequence, end = chunk.sequence, chunk.start + chunk.count
            for at in range(end):
                slot = sequence.table.pages[at // PAGE_SIZE] * PAGE_SIZE + at % PAGE_SIZE
                entry = (sequence.key, at, sequence.ids[at])
                if at >= chunk.start:
                    self.written[slot] = entry
                assert self.written[slot] == entry, "every key that attention reads is its own"
            if sequence.scores is not None:
                sequence.scores.add(chunk.scored, (), ())  # for a logprob the position it is from
        return {
            chunk.sequence.key: self.token(chunk.sequence.key, len(chunk.sequence.ids))
            for chunk in chunks
            if chunk.draws
        }

    def output(self, sequence: Sequence) -> tuple[list[int], Finish]:
        """What a sequence of this key says if nothing disturbs it."""
        said: list[int] = []
        while len(said) < sequence.max_tokens:
            token = self.token(sequence.key, len(sequence.request.prompt) + len(said))
            if token == EOS:
                return said, Finish.STOP
            said.append(token)
        return said, Finish.LENGTH


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


def outputs(sequences: Rows[Sequence], **settings: int) -> tuple[dict[int, list[int]], Scheduler]:
    """All at once, to their end."""
    scheduler, model = a_scheduler(max_waiting=len(sequences), **settings), FakeModel()
    for sequence in sequences:
        assert scheduler.add(sequence)
    said: dict[int, list[int]] = {sequence.key: [] for sequence in sequences}
    steps = 0
    while scheduler and steps < MANY_STEPS:
        steps += 1
        chunks = scheduler.schedule()
        for outcome in scheduler.book(chunks, model.run(chunks)):
            if outcome.token is not None:
                said[outcome.sequence.key].append(outcome.token)
    assert not scheduler
    assert scheduler.pool.free == scheduler.pool.size
    return said, scheduler


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(PROMPTS, st.integers(0, CONTEXT)), min_size=1, max_size=8),
    pages=st.integers(PAGES, 4 * PAGES),
    max_running=st.integers(1, 8),
    step_tokens=st.integers(1, 100),
)
def test_outputs_do_not_depend_on_the_size_of_the_pool(
    sizes: list[tuple[int, int]], pages: int, max_running: int, step_tokens: int
) -> None:
    small, crowded = outputs(
        [a_sequence(key, *size) for key, size in enumerate(sizes)],
        pages=pages,
        max_running=max_running,
        step_tokens=step_tokens,
    )
    large, roomy = outputs(
        [a_sequence(key, *size) for key, size in enumerate(sizes)],
        pages=len(sizes) * 2 * PAGES,
        max_running=8,
    )
    assert small == large
    event(f"preemptions: {min(crowded.preemptions, 5)}")
    assert roomy.preemptions == 0


def test_a_long_limit_takes_no_pages_before_it_needs_them() -> None:
    """Eight calls that might fill the pool by themselves run side by side."""
    scheduler = a_scheduler(max_running=8, pages=24)
    for key in range(8):
        scheduler.add(a_sequence(key, 3, CONTEXT - 3))
    assert len(scheduler.running) == 8
    scheduler.book(scheduler.schedule(), dict.fromkeys(range(8), WORD))
    assert scheduler.pool.free == 24 - 8


def test_the_newest_stands_still_gives_way_and_comes_back() -> None:
    scheduler, model = a_scheduler(pages=5, step_tokens=64), FakeModel(words=10**9)
    for key in range(2):
        scheduler.add(a_sequence(key, 30, 32))
    steps: list[list[tuple[int, int, int]]] = []
    preempted = []
    while scheduler and len(steps) < MANY_STEPS:
        chunks = scheduler.schedule()
        steps.append([(one.sequence.key, one.start, one.count) for one in chunks])
        preempted.append(scheduler.preemptions)
        scheduler.book(chunks, model.run(chunks))
    # Both are read and say two words more; then four pages are full and there is one left.
    assert steps[:3] == [
        [(0, 0, 30), (1, 0, 30)],
        [(0, 30, 1), (1, 30, 1)],
        [(0, 31, 1), (1, 31, 1)],
    ]
    assert steps[3:19] == [[(0, at, 1)] for at in range(32, 48)]
    assert preempted[:19] == [0] * 19
    # The older one needs another, and so the newer one's.
    assert steps[19:32] == [[(0, at, 1)] for at in range(48, 61)]
    # It is over. The newer one is read again, with the three words it had said, and goes on.
    assert steps[32:34] == [[(1, 0, 33)], [(1, 33, 1)]]
    assert set(preempted[19:]) == {1}


def test_nobody_overtakes_who_has_run() -> None:
    scheduler, model = a_scheduler(pages=5, step_tokens=64), FakeModel(words=10**9)
    for key in range(2):
        scheduler.add(a_sequence(key, 30, 32, priority=5))
    while not scheduler.preemptions:
        chunks = scheduler.schedule()
        scheduler.book(chunks, model.run(chunks))
    scheduler.add(a_sequence(2, 1, 1, priority=-9))
    scheduler.add(a_sequence(3, 1, 1, priority=-10))
    assert scheduler.open_keys() == [0, 1, 3, 2]


def test_an_urgent_call_that_can_run_at_once_needs_no_place_in_the_queue() -> None:
    scheduler = a_scheduler(max_running=4, max_waiting=1, pages=5)
    scheduler.add(a_sequence(0, 30, 4))
    scheduler.add(a_sequence(1, 60, 4))  # its pages are not there
    assert not scheduler.add(a_sequence(2, 1, 4))
    assert scheduler.add(a_sequence(3, 1, 4, priority=-1))
    assert scheduler.open_keys() == [0, 3, 1]


def test_decodes_share_a_step_with_one_prompts_chunk() -> None:
    scheduler = a_scheduler(step_tokens=24, pages=24)
    for key in range(2):
        scheduler.add(a_sequence(key, 3, 20))
    scheduler.book(scheduler.schedule(), {0: WORD, 1: WORD})
    scheduler.add(a_sequence(2, 100, 4))
    scheduler.add(a_sequence(3, 5, 4))
    for _ in range(4):
        chunks = scheduler.schedule()
        assert [(one.sequence.key, one.count) for one in chunks] == [(0, 1), (1, 1), (2, 22)]
        scheduler.book(chunks, {0: WORD, 1: WORD})
    chunks = scheduler.schedule()
    assert [(one.sequence.key, one.count) for one in chunks] == [(0, 1), (1, 1), (2, 12), (3, 5)]
    assert [one.draws for one in chunks] == [True] * 4


def test_prompts_progress_beside_many_decodes() -> None:
    scheduler = a_scheduler(max_running=4, step_tokens=1)
    for key in range(3):
        scheduler.add(a_sequence(key, 1, 20))
        scheduler.book(scheduler.schedule(), dict.fromkeys(range(3), WORD))
    scheduler.add(a_sequence(3, 40, 1))
    assert [one.count for one in scheduler.schedule()] == [1, 1, 1, LEAST_PREFILL]


def test_a_table_grows_as_far_as_there_are_pages() -> None:
    pool, table, other = PagePool(4), PageTable(), PageTable()
    assert pool.grow(table, 20)
    assert (table.capacity, pool.free) == (32, 2)
    assert pool.grow(table, 32)
    assert not pool.grow(other, 33)
    assert (other.capacity, pool.free) == (32, 0)
    pool.release(table)
    assert (table.pages, pool.free) == ([], 2)
    assert pool.grow(other, 33)


def test_neither_the_port_nor_the_scheduler_imports_torch() -> None:
    code = (
        "import sys, antiphon.engines.port, antiphon.engines.torch.loop, antiphon.engines.torch; "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
