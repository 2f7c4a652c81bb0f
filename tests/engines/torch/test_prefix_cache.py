"""What was read once is found again, by those who may and as long as it is there."""

from __future__ import annotations

from collections import deque

import pytest

from antiphon.engines.torch import prefix_cache
from antiphon.engines.torch.pages import PAGE_SIZE, PagePool, PageTable
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Step
from engines.torch.fake_model import FakeLaunch, FakeModel, a_scheduler, a_sequence, alone

TEXT = list(range(2, 200))


def run(scheduler: Scheduler, model: FakeModel, *sequences: Sequence, depth: int = 1) -> list[Step]:
    """All at once, to their end; everybody says what it would say alone."""
    for sequence in sequences:
        assert scheduler.add(sequence)
    steps = []
    launched: deque[tuple[Step, FakeLaunch]] = deque()
    while scheduler or launched:
        step = scheduler.schedule()
        if step is not None:
            steps.append(step)
            launched.append((step, model.launch(step)))
        if step is None or len(launched) >= depth:
            earliest, launch = launched.popleft()
            scheduler.book(earliest, launch.drawn().token)
    for sequence in sequences:
        assert list(sequence.output) == alone(sequence)[0]
    return steps


def test_a_second_turn_reads_what_is_new() -> None:
    scheduler, model = a_scheduler(), FakeModel()
    first = a_sequence(1, TEXT[:100], 20)
    run(scheduler, model, first)
    assert first.hits == 0
    before = model.read
    second = a_sequence(2, [*first.ids, *TEXT[150:160]], 1)
    run(scheduler, model, second)
    # The last token of the first turn was never read, so its page was not full.
    assert second.hits == (len(first.ids) - 1) // PAGE_SIZE * PAGE_SIZE
    assert model.read - before == len(second.request.prompt) - second.hits


@pytest.mark.parametrize(("length", "hits"), [(31, 16), (32, 16), (33, 32), (16, 0), (1, 0)])
def test_the_last_token_is_always_read(length: int, hits: int) -> None:
    scheduler, model = a_scheduler(), FakeModel()
    run(scheduler, model, a_sequence(1, TEXT[:length], 1))
    second = a_sequence(2, TEXT[:length], 1)
    run(scheduler, model, second)
    assert second.hits == hits


def test_only_the_same_beginning_of_the_same_salt_is_found() -> None:
    scheduler, model = a_scheduler(pages=40), FakeModel()
    run(scheduler, model, a_sequence(1, TEXT[:80], 1, salt=b"a"))
    other_salt = a_sequence(2, TEXT[:80], 1, salt=b"b")
    moved = a_sequence(3, [1, *TEXT[:79]], 1, salt=b"a")
    middle = a_sequence(4, TEXT[16:80], 1, salt=b"a")
    branch = a_sequence(5, [*TEXT[:40], 1, *TEXT[41:80]], 1, salt=b"a")
    run(scheduler, model, other_salt, moved, middle, branch)
    assert [one.hits for one in (other_salt, moved, middle, branch)] == [0, 0, 0, 32]


@pytest.mark.parametrize("depth", [1, 2])
def test_siblings_cost_one_prompt_and_their_ends(depth: int) -> None:
    """They take as many steps as one does; a step more where one is launched unseen."""
    scheduler, model = a_scheduler(pages=20), FakeModel()
    siblings = [a_sequence(key, TEXT[:150], 1, group=1) for key in range(4)]
    steps = run(scheduler, model, *siblings, depth=depth)
    assert [one.hits for one in siblings] == [0, 144, 144, 144]
    assert model.read == 150 + 3 * 6
    assert len(steps) == 150 // 24 + 1 + depth - 1


def test_strangers_with_the_same_text_wait_for_each_other_as_well() -> None:
    """The third has another end, and the fourth nothing in common."""
    scheduler, model = a_scheduler(pages=40), FakeModel()
    texts = [TEXT[:100], TEXT[:100], [*TEXT[:70], 1, 1, 1], [1, *TEXT[:20]]]
    sequences = [a_sequence(key, text, 1) for key, text in enumerate(texts)]
    run(scheduler, model, *sequences)
    assert [one.hits for one in sequences] == [0, 96, 64, 0]


@pytest.mark.parametrize("depth", [1, 2])
def test_who_reads_for_others_may_leave(depth: int) -> None:
    scheduler, model = a_scheduler(), FakeModel()
    siblings = [a_sequence(key, TEXT[:150], 1, group=1) for key in range(4)]
    for one in siblings:
        scheduler.add(one)
    for _ in range(2):
        step = scheduler.schedule()
        assert step is not None
        assert [chunk.sequence.key for chunk in step.chunks] == [0]
        scheduler.book(step, model.run(step))
    scheduler.remove(0)
    run(scheduler, model, depth=depth)
    assert [one.hits for one in siblings] == [0, 48, 144, 144], "the first who waited reads on"
    assert model.read == 48 + (150 - 48) + 2 * 6
    assert all(list(one.output) == alone(one)[0] for one in siblings[1:])


def test_who_scores_its_prompt_reads_all_of_it_for_others_too() -> None:
    scheduler, model = a_scheduler(pages=40), FakeModel()
    run(scheduler, model, a_sequence(1, TEXT[:60], 1))
    scoring = a_sequence(2, TEXT[:100], 1, prompt_logprobs=0)
    waiting = a_sequence(3, TEXT[:100], 1)
    run(scheduler, model, scoring, waiting)
    assert (scoring.hits, waiting.hits) == (0, 96)
    assert scoring.scores is not None
    assert list(scoring.scores.block().logprob) == list(range(99))


def test_it_can_be_turned_off() -> None:
    scheduler, model = a_scheduler(prefix_cache=False), FakeModel()
    siblings = [a_sequence(key, TEXT[:50], 1, group=1) for key in range(3)]
    run(scheduler, model, *siblings)
    assert model.read == 150
    assert (scheduler.pool.free, scheduler.pool.kept) == (scheduler.pool.size, 0)


def test_what_a_preempted_one_finds_of_its_own_was_not_given_to_it() -> None:
    scheduler, model = a_scheduler(pages=5, step_tokens=64), FakeModel(words=10**9)
    sequences = [a_sequence(key, 30, 32) for key in range(2)]
    for one in sequences:
        scheduler.add(one)
    while scheduler:
        step = scheduler.schedule()
        assert step is not None
        scheduler.book(step, model.run(step))
    assert scheduler.preemptions == 1
    assert [one.hits for one in sequences] == [0, 0]
    assert model.read < 2 * (30 + 31) + 33, "a page of it was not read twice"


def test_names_that_collide_are_told_apart_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    class Constant:
        def __init__(self, data: bytes, digest_size: int) -> None:
            self.size = digest_size

        def digest(self) -> bytes:
            return bytes(self.size)

    monkeypatch.setattr(prefix_cache, "blake2b", Constant)
    scheduler, model = a_scheduler(), FakeModel()
    for key in range(3):
        one = a_sequence(key, TEXT[40 * key :][:40], 8)
        run(scheduler, model, one)
        assert one.hits == 0


def test_pages_that_nobody_holds_make_no_room_for_who_would_hit_them() -> None:
    """Taking them takes them from the free ones."""
    scheduler, model = a_scheduler(), FakeModel()
    run(scheduler, model, a_sequence(1, TEXT[:150], 1))
    scheduler.add(a_sequence(2, 60, 40))
    step = scheduler.schedule()
    assert step is not None
    scheduler.book(step, model.run(step))
    again = a_sequence(3, TEXT[:150], 1)
    scheduler.add(again)
    assert [one.key for one in scheduler.waiting] == [3]
    run(scheduler, model)
    assert list(again.output) == alone(again)[0]


def table_of(pool: PagePool, *names: bytes) -> PageTable:
    """A page for each name; an empty name gives none."""
    table = PageTable()
    pool.grow(table, PAGE_SIZE * len(names))
    for page, name in zip(table.pages, names, strict=True):
        if name:
            pool.name(page, name)
    return table


def test_what_is_named_is_reused_last_and_the_end_of_a_text_before_its_beginning() -> None:
    pool = PagePool(7)
    first = table_of(pool, b"a0", b"a1", b"")
    second = table_of(pool, b"b0", b"b1")
    holder = PageTable()
    page = pool.find(b"a0")
    assert page is not None
    pool.share(holder, page)
    pool.release(first)
    pool.release(second)
    assert (pool.free, pool.kept) == (6, 3), "a0 is held by another"
    taken = PageTable()
    found = []
    while pool.grow(taken, taken.capacity + PAGE_SIZE):
        found.append([name for name in (b"a0", b"a1", b"b0", b"b1") if pool.find(name) is not None])
    assert found == [[b"a0", b"a1", b"b0", b"b1"]] * 3 + [
        [b"a0", b"b0", b"b1"],
        [b"a0", b"b0"],
        [b"a0"],
    ]
    assert page not in taken.pages


def test_a_page_that_is_found_again_counts_as_used_again() -> None:
    pool = PagePool(2)
    for name in (b"old", b"new"):
        pool.release(table_of(pool, name))
    page = pool.find(b"old")
    assert page is not None
    table = PageTable()
    pool.share(table, page)
    pool.release(table)
    pool.grow(table, PAGE_SIZE)
    assert (pool.find(b"old"), pool.find(b"new")) == (page, None)
