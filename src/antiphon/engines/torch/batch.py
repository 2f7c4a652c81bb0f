"""From the chunks of a step to its tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch

from antiphon.engines.torch.models.attention import AttentionGroup
from antiphon.engines.torch.models.decoder import StepBatch
from antiphon.engines.torch.pages import PAGE_SIZE, pages_for
from antiphon.engines.torch.scheduler import Chunk


def attention_groups(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """The chunks that attend together.

    Single tokens share a group when their page counts have the same binary length, so padding
    never doubles the pages read; longer chunks stand alone.
    """
    singles: dict[int, list[Chunk]] = defaultdict(list)
    alone = []
    for chunk in chunks:
        if chunk.count == 1:
            singles[(_pages_seen(chunk) - 1).bit_length()].append(chunk)
        else:
            alone.append([chunk])
    return [*singles.values(), *alone]


def build_batch(
    groups: list[list[Chunk]],
    *,
    heads_per_key: int,
    window: int | None = None,
    padding_page: int,
    dtype: torch.dtype,
    device: torch.device,
) -> StepBatch:
    """The tensors of a step; rows are in the order of ``groups``, drawing rows too.

    ``window`` is how many tokens one sees, itself among them; None: all up to itself.
    """
    ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    fresh: list[int] = []
    drawing: list[int] = []
    tensors = []
    for group in groups:
        first = len(ids)
        for chunk in group:
            span = range(chunk.start, chunk.start + chunk.count)
            pages = chunk.sequence.table.pages
            ids.extend(chunk.sequence.ids[chunk.start : chunk.start + chunk.count])
            positions.extend(span)
            slots.extend(pages[at // PAGE_SIZE] * PAGE_SIZE + at % PAGE_SIZE for at in span)
            fresh.extend(pages[pages_for(chunk.start) : _pages_seen(chunk)])
            if chunk.draws:
                drawing.append(len(ids) - 1)
        rows = slice(first, len(ids))
        length = max(chunk.start + chunk.count for chunk in group)
        hidden = _hidden(group, length, window, device)
        tensors.append(
            AttentionGroup(
                rows=rows,
                batch=len(group),
                pages=torch.tensor(_padded_pages(group, padding_page), device=device),
                length=length,
                mask=None if hidden is None else _mask(hidden, heads_per_key, dtype),
            )
        )
    return StepBatch(
        ids=torch.tensor(ids, device=device),
        positions=torch.tensor(positions, device=device),
        slots=torch.tensor(slots, device=device),
        fresh=torch.tensor(fresh, dtype=torch.int64, device=device),
        groups=tensors,
        drawing=torch.tensor(drawing, dtype=torch.int64, device=device),
    )


def _padded_pages(group: list[Chunk], padding_page: int) -> list[int]:
    """The pages that each sequence reads, all padded to the longest, one after the other.

    The scheduler has grown every table to the end of its chunk.
    """
    width = max(_pages_seen(chunk) for chunk in group)
    padding = [padding_page] * width
    return [page for chunk in group for page in (chunk.sequence.table.pages + padding)[:width]]


def _hidden(
    group: list[Chunk], length: int, window: int | None, device: torch.device
) -> torch.Tensor | None:
    """bool [batch, tokens, length]: keys that lie behind their query, or too far before it.

    None if none does.
    """
    new = group[0].count
    sees_all = window is None or length <= window
    if sees_all and new == 1 and all(chunk.start + 1 == length for chunk in group):
        return None
    starts = torch.tensor([chunk.start for chunk in group], device=device)
    seen = starts[:, None] + torch.arange(new, device=device)
    seen = seen[:, :, None]
    keys = torch.arange(length, device=device)
    behind = keys > seen
    return behind if window is None else behind | (keys <= seen - window)


def _mask(hidden: torch.Tensor, heads_per_key: int, dtype: torch.dtype) -> torch.Tensor:
    """Minus infinity where hidden: [batch, 1, heads_per_key * tokens, length]."""
    mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
    return mask.masked_fill_(hidden, -torch.inf).repeat(1, heads_per_key, 1).unsqueeze(1)


def _pages_seen(chunk: Chunk) -> int:
    return pages_for(chunk.start + chunk.count)
