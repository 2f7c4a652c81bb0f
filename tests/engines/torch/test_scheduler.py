"""Scheduler and pages against a model, over random histories; torch is not needed."""

from __future__ import annotations

import subprocess
import sys
from array import array

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.engines.port import EngineRequest, Finish
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool, pages_for
from antiphon.engines.torch.scheduler import LEAST_PREFILL, Chunk, Scheduler
from antiphon.engines.torch.sequence import Sequence

PAGES = 12
CONTEXT = PAGES * PAGE_SIZE
EOS, WORD = 0, 1


def a_sequence(key: int, prompt: int, max_tokens: int) -> Sequence:
    request = EngineRequest(
        key=key,
        id=f"{key}-0",
        group=key,
        model="m",
        prompt=array("I", [WORD] * prompt),
        max_tokens=max_tokens,
    )
    return Sequence.of(request, CONTEXT, frozenset({EOS}))


def a_scheduler(max_running: int = 4, max_waiting: int = 5, step_tokens: int = 24) -> Scheduler:
    return Scheduler(
        PagePool(PAGES), max_running=max_running, max_waiting=max_waiting, step_tokens=step_tokens
    )


class Histories(RuleBasedStateMachine):
    """Submits, aborts and steps in any order; the model is a list of what must be true."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = a_scheduler()
        self.next_key = 0
        self.open: list[int] = []  # in order of arrival
        self.started: list[int] = []
        self.ended: set[int] = set()

    @rule(prompt=st.integers(1, CONTEXT - 1), max_tokens=st.integers(0, 2 * CONTEXT))
    def submit(self, prompt: int, max_tokens: int) -> None:
        key, self.next_key = self.next_key, self.next_key + 1
        if self.scheduler.add(a_sequence(key, prompt, max_tokens)):
            self.open.append(key)
        else:
            assert len(self.scheduler.waiting) == self.scheduler.max_waiting
            assert key not in self.scheduler

    @rule(key=st.integers(0, 60))
    def abort(self, key: int) -> None:
        removed = self.scheduler.remove(key)
        assert (removed is not None) == (key in self.open)
        if removed is not None:
            self.end(key)

    @rule(draws=st.lists(st.sampled_from([WORD, WORD, WORD, EOS]), min_size=4, max_size=4))
    def step(self, draws: list[int]) -> None:
        self.turn(dict(enumerate(draws)))

    def turn(self, draws: dict[int, int]) -> None:
        chunks = self.scheduler.schedule()
        if self.open:
            assert chunks
            assert self.open[0] in [chunk.sequence.key for chunk in chunks], "the oldest progresses"
        self.check_chunks(chunks)
        self.started.extend(
            chunk.sequence.key for chunk in chunks if chunk.sequence.key not in self.started
        )
        drawn = {
            chunk.sequence.key: draws.get(index, EOS)
            for index, chunk in enumerate(chunks)
            if chunk.draws
        }
        for outcome in self.scheduler.book(chunks, drawn):
            sequence = outcome.sequence
            if outcome.finish is Finish.STOP:
                assert outcome.stop_id == drawn[sequence.key] == EOS
            if outcome.finish is Finish.LENGTH:
                assert sequence.drawn == sequence.max_tokens
            if outcome.finish:
                self.end(sequence.key)

    def check_chunks(self, chunks: list[Chunk]) -> None:
        keys = [chunk.sequence.key for chunk in chunks]
        assert len(set(keys)) == len(keys)
        decoding = sum(chunk.sequence.drawn > 0 for chunk in chunks)
        prefill = sum(chunk.count for chunk in chunks) - decoding
        assert prefill <= max(self.scheduler.step_tokens - decoding, LEAST_PREFILL)
        for chunk in chunks:
            assert chunk.start == chunk.sequence.cached
            assert chunk.sequence.table is not None
            assert len(chunk.sequence.table.pages) == pages_for(chunk.start + chunk.count)

    def end(self, key: int) -> None:
        assert key not in self.ended, "one terminal each"
        self.ended.add(key)
        self.open.remove(key)

    @invariant()
    def pages_are_owned_once(self) -> None:
        pool, running = self.scheduler.pool, self.scheduler.running.values()
        tables = [one.table for one in running if one.table is not None]
        owned = [page for table in tables for page in table.pages]
        assert len(tables) == len(running)
        assert sorted(owned + pool._free) == list(range(PAGES))
        assert pool.unpromised == PAGES - sum(table.promised for table in tables) >= 0
        assert all(len(table.pages) <= table.promised for table in tables)
        assert all(one.table is None for one in self.scheduler.waiting)

    @invariant()
    def first_come_first_served(self) -> None:
        keys = self.scheduler.open_keys()
        assert keys == self.open, "running and waiting keys are in order of arrival"
        assert len(self.scheduler.running) <= self.scheduler.max_running
        assert len(self.scheduler.waiting) <= self.scheduler.max_waiting
        assert self.started == sorted(self.started)

    def teardown(self) -> None:
        for _ in range(len(self.open) * 2 * CONTEXT + 1):
            self.turn({})
        assert not self.open
        assert not self.scheduler
        assert self.scheduler.pool.free == self.scheduler.pool.unpromised == PAGES


Histories.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestHistories = Histories.TestCase


def test_decodes_share_a_step_with_one_prompts_chunk() -> None:
    scheduler = a_scheduler(step_tokens=24)
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


def test_a_table_cannot_outgrow_its_promise() -> None:
    pool = PagePool(4)
    table = pool.promise(20)
    assert table is not None
    pool.grow(table, 32)
    with pytest.raises(ValueError, match="promised"):
        pool.grow(table, 33)
    assert pool.promise(40) is None
    pool.release(table)
    assert pool.free == pool.unpromised == 4


def test_neither_the_port_nor_the_scheduler_imports_torch() -> None:
    code = (
        "import sys, antiphon.engines.port, antiphon.engines.torch.loop, antiphon.engines.torch; "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
