"""Who runs, who waits and who gives way; torch is not needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence as Rows
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from antiphon.engines.torch.pages import PagePool, PageTable
from antiphon.engines.torch.scheduler import LEAST_PREFILL, Scheduler
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk, Step
from engines.torch.fake_model import (
    CONTEXT,
    PAGES,
    PROMPTS,
    WORD,
    FakeLaunch,
    FakeModel,
    a_scheduler,
    a_sequence,
)

MANY_STEPS = 20_000


def outputs(sequences: Rows[Sequence], **settings: Any) -> tuple[dict[int, list[int]], Scheduler]:
    """All at once, to their end."""
    scheduler, model = a_scheduler(max_waiting=len(sequences), **settings), FakeModel()
    for sequence in sequences:
        assert scheduler.add(sequence)
    said: dict[int, list[int]] = {sequence.key: [] for sequence in sequences}
    steps = 0
    while scheduler and steps < MANY_STEPS:
        steps += 1
        step = scheduler.schedule()
        assert step is not None
        booked = scheduler.book(step, model.run(step))
        new = [one for one, n_new in zip(booked.sequence, booked.n_new, strict=True) if n_new]
        for sequence, token in zip(new, booked.token, strict=True):
            said[sequence.key].append(token)
    assert not scheduler
    assert scheduler.pool.free == scheduler.pool.size
    return said, scheduler


def step(scheduler: Scheduler, model: FakeModel | None = None) -> list[Chunk]:
    """One step, in which all that draw say a word unless there is a model; its chunks."""
    planned = scheduler.schedule()
    assert planned is not None
    tokens = [WORD] * len(planned.drawing) if model is None else model.run(planned)
    scheduler.book(planned, tokens)
    return planned.chunks


def ahead(scheduler: Scheduler, model: FakeModel) -> tuple[Step, FakeLaunch]:
    """One step more is launched, and nothing booked."""
    planned = scheduler.schedule()
    assert planned is not None
    return planned, model.launch(planned)


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
    step(scheduler)
    assert scheduler.pool.free == 24 - 8


def test_the_newest_stands_still_gives_way_and_comes_back() -> None:
    scheduler, model = a_scheduler(pages=5, step_tokens=64), FakeModel(words=10**9)
    for key in range(2):
        scheduler.add(a_sequence(key, 30, 32))
    steps: list[list[tuple[int, int, int]]] = []
    preempted = []
    while scheduler and len(steps) < MANY_STEPS:
        chunks = step(scheduler, model)
        steps.append([(one.sequence.key, one.start, one.count) for one in chunks])
        preempted.append(scheduler.preemptions)
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
    # It is over. The newer one is read again, with the three words it had said, and goes on: one of
    # its pages was not reused meanwhile.
    assert steps[32:34] == [[(1, 16, 17)], [(1, 33, 1)]]
    assert set(preempted[19:]) == {1}


def test_nobody_overtakes_who_has_run() -> None:
    scheduler, model = a_scheduler(pages=5, step_tokens=64), FakeModel(words=10**9)
    for key in range(2):
        scheduler.add(a_sequence(key, 30, 32, priority=5))
    while not scheduler.preemptions:
        step(scheduler, model)
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
    step(scheduler)
    scheduler.add(a_sequence(2, 100, 4))
    scheduler.add(a_sequence(3, 5, 4))
    for _ in range(4):
        chunks = step(scheduler)
        assert [(one.sequence.key, one.count) for one in chunks] == [(0, 1), (1, 1), (2, 22)]
    chunks = step(scheduler)
    assert [(one.sequence.key, one.count) for one in chunks] == [(0, 1), (1, 1), (2, 12), (3, 5)]
    assert [one.draws for one in chunks] == [True] * 4


def test_prompts_progress_beside_many_decodes() -> None:
    scheduler = a_scheduler(max_running=4, step_tokens=1)
    for key in range(3):
        scheduler.add(a_sequence(key, 1, 20))
        step(scheduler)
    scheduler.add(a_sequence(3, 40, 1))
    assert [one.count for one in step(scheduler)] == [1, 1, 1, LEAST_PREFILL]


def test_nobody_is_preempted_for_pages_that_are_on_their_way_back() -> None:
    scheduler, model = a_scheduler(step_tokens=64), FakeModel(words=10**9)
    for key, prompt in enumerate((15, 5, 5)):
        scheduler.add(a_sequence(key, prompt, 9))
    (first, drawn), (second, drawn_later) = (ahead(scheduler, model) for _ in range(2))
    scheduler.book(first, drawn.drawn().token)
    scheduler.pool.grow(PageTable(), CONTEXT)  # all that are left
    scheduler.remove(2)  # its page comes back with the second step
    third, _ = ahead(scheduler, model)
    assert [chunk.sequence.key for chunk in third.chunks] == [1], "the oldest stands still"
    assert scheduler.preemptions == 0
    scheduler.book(second, drawn_later.drawn().token)
    fourth, _ = ahead(scheduler, model)
    assert [chunk.sequence.key for chunk in fourth.chunks] == [0, 1]
    assert scheduler.preemptions == 0


def test_a_preempted_one_comes_back_when_all_that_it_draws_is_known() -> None:
    scheduler, model = a_scheduler(), FakeModel(words=10**9)
    for key in range(2):
        scheduler.add(a_sequence(key, 5, 9))
    (first, drawn), (second, drawn_later) = (ahead(scheduler, model) for _ in range(2))
    scheduler._preempt(scheduler.running[1])
    scheduler.book(first, drawn.drawn().token)
    assert list(scheduler.running) == [0]
    booked = scheduler.book(second, drawn_later.drawn().token)
    assert [one.key for one in booked.sequence] == [0, 1], "what was drawn before is kept"
    assert list(scheduler.running) == [0, 1]
    third, _ = ahead(scheduler, model)
    assert [(chunk.start, chunk.count) for chunk in third.chunks] == [(6, 1), (0, 7)]


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
