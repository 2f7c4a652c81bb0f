"""Which chunks attend together, and what their tensors say."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.models.decoder import StepBatch
from antiphon.engines.torch.pages import PageTable, pages_for
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk
from engines.torch.requests import a_request

PADDING = 999


def a_chunk(key: int, start: int, count: int, behind: int = 0) -> Chunk:
    """``behind`` ids are left to read after the chunk. Pages are 100 * key, 100 * key + 1, …"""
    ids = range(start + count + behind)
    sequence = Sequence.of(a_request(key, ids), 10_000, frozenset())
    pages = [100 * key + page for page in range(pages_for(start + count))]
    sequence.table = PageTable(pages)
    return Chunk(sequence, start, count)


def a_batch(
    groups: list[list[Chunk]], drawing: list[Chunk] | None = None, window: int | None = None
) -> StepBatch:
    return build_batch(
        groups,
        drawing=drawing,
        window=window,
        heads_per_key=2,
        padding_page=PADDING,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


@given(st.lists(st.tuples(st.integers(0, 600), st.sampled_from([1, 1, 1, 5, 40])), min_size=1))
def test_groups_cover_all_and_never_double_the_pages_read(sizes: list[tuple[int, int]]) -> None:
    chunks = [a_chunk(key, start, count) for key, (start, count) in enumerate(sizes)]
    groups = attention_groups(chunks)
    assert sorted(id(one) for group in groups for one in group) == sorted(map(id, chunks))
    for group in groups:
        assert len(group) == 1 or {one.count for one in group} == {1}
        pages = [pages_for(one.start + one.count) for one in group]
        assert max(pages) * len(pages) < 2 * sum(pages)


def test_a_batch_of_two_decodes_and_a_chunk() -> None:
    batch = a_batch([[a_chunk(1, 17, 1), a_chunk(2, 33, 1)], [a_chunk(3, 14, 4, behind=2)]])
    assert batch.ids.tolist() == batch.positions.tolist() == [17, 33, 14, 15, 16, 17]
    assert batch.slots.tolist() == [101 * 16 + 1, 202 * 16 + 1, 300 * 16 + 14, 300 * 16 + 15,
                                    301 * 16, 301 * 16 + 1]  # fmt: skip
    assert batch.drawing.tolist() == [0, 1]
    assert batch.fresh.tolist() == [301], "pages 101 and 202 hold a token already"
    decodes, chunk = batch.groups
    assert decodes.pages.tolist() == [100, 101, PADDING, 200, 201, 202]
    assert (decodes.rows, chunk.rows) == (slice(0, 2), slice(2, 6))
    assert decodes.mask is not None
    assert (decodes.mask[0, 0] == 0).sum(-1).tolist() == [18, 18]
    assert (decodes.mask[1, 0] == 0).sum(-1).tolist() == [34, 34]
    assert chunk.mask is not None
    assert (chunk.mask[0, 0] == 0).sum(-1).tolist() == [15, 16, 17, 18] * 2


def test_decodes_of_one_length_need_no_mask() -> None:
    batch = a_batch([[a_chunk(1, 20, 1), a_chunk(2, 20, 1)]])
    assert batch.groups[0].mask is None


def test_draws_are_in_the_order_of_the_step() -> None:
    long, short, reading = a_chunk(1, 90, 1), a_chunk(2, 5, 1), a_chunk(3, 0, 20)
    waiting = a_chunk(4, 0, 7, behind=1)
    step = [reading, long, waiting, short]
    batch = a_batch(attention_groups(step), drawing=step)
    rows = batch.positions[batch.drawing].tolist()
    assert rows == [19, 90, 5], "the last rows of those that draw, one after the other"


def test_pages_that_follow_each_other_are_read_where_they_are() -> None:
    alone, other = a_chunk(1, 40, 1), a_chunk(2, 40, 1)
    assert a_batch([[alone]]).groups[0].first_slot == 100 * 16
    assert a_batch([[alone, other]]).groups[0].first_slot is None, "two are gathered"
    alone.table.pages[:] = [100, 102, 101]
    assert a_batch([[alone]]).groups[0].first_slot is None


def test_a_window_hides_what_is_too_far_back() -> None:
    (decode,) = a_batch([[a_chunk(1, 40, 1)]], window=16).groups
    assert decode.mask is not None
    assert (decode.mask[0, 0, 0] == 0).nonzero().flatten().tolist() == list(range(25, 41))
    (chunk,) = a_batch([[a_chunk(1, 14, 4)]], window=16).groups
    assert chunk.mask is not None
    assert (chunk.mask[0, 0] == 0).sum(-1).tolist() == [15, 16, 16, 16] * 2


def test_pages_that_a_step_fills_need_no_clearing() -> None:
    assert a_batch([[a_chunk(1, 0, 40)]]).fresh.tolist() == [102]
    assert a_batch([[a_chunk(1, 0, 32)]]).fresh.tolist() == []
    assert a_batch([[a_chunk(1, 16, 1)]]).fresh.tolist() == [101]
