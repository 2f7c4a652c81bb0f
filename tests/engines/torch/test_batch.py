"""Which chunks attend together, and what their tensors say."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.models.attention import AttentionGroup, SingleToken
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.models.decoder import StepBatch
from antiphon.engines.torch.models.kv_cache import KVCache
from antiphon.engines.torch.pages import PageTable, pages_for
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk
from engines.torch.requests import a_request

PADDING = 999
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


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
        device=CPU,
    )


def the_groups(batch: StepBatch) -> list[AttentionGroup]:
    """The groups of a batch that has no single tokens."""
    groups = [group for group in batch.groups if isinstance(group, AttentionGroup)]
    assert len(groups) == len(batch.groups)
    return groups


@given(st.lists(st.tuples(st.integers(0, 600), st.sampled_from([1, 1, 1, 5, 40])), min_size=1))
def test_groups_cover_all_and_never_double_the_pages_read(sizes: list[tuple[int, int]]) -> None:
    chunks = [a_chunk(key, start, count) for key, (start, count) in enumerate(sizes)]
    groups = attention_groups(chunks, CUDA)
    assert sorted(id(one) for group in groups for one in group) == sorted(map(id, chunks))
    for group in groups:
        assert len(group) == 1 or {one.count for one in group} == {1}
        pages = [pages_for(one.start + one.count) for one in group]
        assert max(pages) * len(pages) < 2 * sum(pages)
    assert attention_groups(chunks, CPU) == [[chunk] for chunk in chunks]


def test_a_batch_of_two_decodes_and_a_chunk() -> None:
    batch = a_batch([[a_chunk(1, 17, 1), a_chunk(2, 33, 1)], [a_chunk(3, 14, 4, behind=2)]])
    assert batch.ids.tolist() == batch.positions.tolist() == [17, 33, 14, 15, 16, 17]
    assert batch.slots.tolist() == [101 * 16 + 1, 202 * 16 + 1, 300 * 16 + 14, 300 * 16 + 15,
                                    301 * 16, 301 * 16 + 1]  # fmt: skip
    assert batch.drawing.tolist() == [0, 1]
    assert batch.fresh.tolist() == [301], "pages 101 and 202 hold a token already"
    decodes, chunk = the_groups(batch)
    assert decodes.pages.tolist() == [100, 101, PADDING, 200, 201, 202]
    assert (decodes.rows, chunk.rows) == (slice(0, 2), slice(2, 6))
    assert decodes.mask is not None
    assert (decodes.mask[0, 0] == 0).sum(-1).tolist() == [18, 18]
    assert (decodes.mask[1, 0] == 0).sum(-1).tolist() == [34, 34]
    assert chunk.mask is not None
    assert (chunk.mask[0, 0] == 0).sum(-1).tolist() == [15, 16, 17, 18] * 2


def test_decodes_of_one_length_need_no_mask() -> None:
    batch = a_batch([[a_chunk(1, 20, 1), a_chunk(2, 20, 1)]])
    assert the_groups(batch)[0].mask is None


def test_draws_are_in_the_order_of_the_step() -> None:
    long, short, reading = a_chunk(1, 90, 1), a_chunk(2, 5, 1), a_chunk(3, 0, 20)
    waiting = a_chunk(4, 0, 7, behind=1)
    step = [reading, long, waiting, short]
    batch = a_batch(attention_groups(step, CUDA), drawing=step)
    rows = batch.positions[batch.drawing].tolist()
    assert rows == [19, 90, 5], "the last rows of those that draw, one after the other"


def test_pages_that_follow_each_other_are_read_where_they_are() -> None:
    alone, chunk, other = a_chunk(1, 40, 1), a_chunk(3, 30, 8), a_chunk(2, 40, 1)
    (single,) = a_batch([[alone]]).groups
    assert isinstance(single, SingleToken)
    assert (single.pages, single.first, single.length) == (None, 1600, 41)
    assert the_groups(a_batch([[chunk]]))[0].first_slot == 4800
    assert the_groups(a_batch([[alone, other]]))[0].first_slot is None, "two are gathered"
    for apart in (alone, chunk):
        apart.table.pages[:] = [100, 102, 101]
    (single,) = a_batch([[alone]]).groups
    assert isinstance(single, SingleToken)
    assert single.pages is not None
    assert (single.pages.tolist(), single.first) == ([100, 102, 101], 0)
    assert the_groups(a_batch([[chunk]]))[0].first_slot is None


def test_a_window_hides_what_is_too_far_back() -> None:
    (decode, _) = the_groups(a_batch([[a_chunk(1, 40, 1), a_chunk(2, 40, 1)], [a_chunk(3, 0, 2)]],
                                     window=16))  # fmt: skip
    assert decode.mask is not None
    assert (decode.mask[0, 0, 0] == 0).nonzero().flatten().tolist() == list(range(25, 41))
    (chunk,) = the_groups(a_batch([[a_chunk(1, 14, 4)]], window=16))
    assert chunk.mask is not None
    assert (chunk.mask[0, 0] == 0).sum(-1).tolist() == [15, 16, 16, 16] * 2


def test_a_single_token_skips_the_pages_before_its_window() -> None:
    (single,) = a_batch([[a_chunk(1, 40, 1)]], window=16).groups
    assert isinstance(single, SingleToken)
    assert (single.first, single.length) == (100 * 16 + 25, 16)
    apart = a_chunk(1, 40, 1)
    apart.table.pages[:] = [100, 103, 101]
    (single,) = a_batch([[apart]], window=16).groups
    assert isinstance(single, SingleToken)
    assert single.pages is not None
    assert (single.pages.tolist(), single.first, single.length) == ([103, 101], 9, 16)


@pytest.mark.parametrize("window", [None, 16, 20, 40])
def test_tokens_attend_alone_as_they_do_together(window: int | None) -> None:
    """Pages in order and out of it, lengths that end within a page and with it."""
    config = DecoderConfig(
        vocab_size=8, hidden_size=32, layers=1, heads=4, kv_heads=2, head_dim=8, ffn_size=8,
        norm_eps=1e-5, rope_theta=1e4, context_length=100, tied_embeddings=True,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(4)
    cache = KVCache(config, 700, torch.float32, CPU)
    every = torch.arange(700 * 16)
    cache.write(0, every, torch.randn((4, len(every), 8), generator=generator))
    chunks = [a_chunk(key, start, 1) for key, start in enumerate((0, 15, 16, 37, 47, 63), 1)]
    chunks[3].table.pages.reverse()
    turned = torch.randn((len(chunks), 4, 8), generator=generator)
    together = a_batch([chunks], window=window)
    alone = a_batch([[chunk] for chunk in chunks], window=window)
    assert all(isinstance(one, SingleToken) for one in alone.groups)
    # The padding page lies beyond this pool.
    (group,) = the_groups(together)
    group.pages[group.pages == PADDING] = 0
    expected = group.attend(group.queries(turned, 2), cache, 0)
    made = torch.cat([one.attend(one.queries(turned, 2), cache, 0) for one in alone.groups])
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-6)


def test_pages_that_a_step_fills_need_no_clearing() -> None:
    assert a_batch([[a_chunk(1, 0, 40)]]).fresh.tolist() == [102]
    assert a_batch([[a_chunk(1, 0, 32)]]).fresh.tolist() == []
    assert a_batch([[a_chunk(1, 16, 1)]]).fresh.tolist() == [101]
