"""From the chunks of a step to its tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from antiphon.engines.torch.models.attention import Attending, AttentionGroup, SingleToken
from antiphon.engines.torch.models.decoder import StepBatch
from antiphon.engines.torch.pages import PAGE_SIZE, pages_for
from antiphon.engines.torch.step import Chunk

Ints: TypeAlias = NDArray[np.int64]


def attention_groups(chunks: Sequence[Chunk], device: torch.device) -> list[list[Chunk]]:
    """The chunks that attend together: on a CPU each for itself.

    Elsewhere single tokens share a group when their page counts have the same binary length, so
    padding never doubles the pages read; longer chunks stand alone.
    """
    if device.type == "cpu":
        return [[chunk] for chunk in chunks]
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
    drawing: Sequence[Chunk] | None = None,
    heads_per_key: int,
    window: int | None = None,
    padding_page: int,
    dtype: torch.dtype,
    device: torch.device,
) -> StepBatch:
    """The tensors of a step; rows are in the order of ``groups``.

    ``drawing`` are the same chunks in the order in which their draws are wanted; None: as they are.
    ``window`` is how many tokens one sees, itself among them; None: all up to itself.
    """
    rows = sum(chunk.count for group in groups for chunk in group)
    # One array for ids, positions and slots: one upload.
    table = np.empty((3, rows), dtype=np.int64)
    fresh: list[int] = []
    last_row: dict[int, int] = {}
    tensors: list[Attending] = []
    first = 0
    for group in groups:
        begin = first
        for chunk in group:
            _fill(table[:, first : first + chunk.count], chunk)
            if chunk.end % PAGE_SIZE and pages_for(chunk.start) < _pages_seen(chunk):
                fresh.append(chunk.table.pages[_pages_seen(chunk) - 1])
            first += chunk.count
            last_row[id(chunk)] = first - 1
        if device.type == "cpu" and len(group) == 1 and group[0].count == 1:
            tensors.append(_single(group[0], begin, window))
            continue
        length = max(chunk.end for chunk in group)
        pages = _padded_pages(group, padding_page)
        hidden = _hidden(group, length, window)
        tensors.append(
            AttentionGroup(
                rows=slice(begin, first),
                batch=len(group),
                pages=_upload(pages, device),
                first_slot=_first_slot(pages) if len(group) == 1 else None,
                length=length,
                dtype=dtype,
                mask=None if hidden is None else _mask(hidden, heads_per_key, dtype, device),
            )
        )
    if drawing is None:
        drawing = [chunk for group in groups for chunk in group]
    draws = [last_row[id(chunk)] for chunk in drawing if chunk.draws]
    ids, positions, slots = _upload(table, device).unbind()
    return StepBatch(
        ids=ids,
        positions=positions,
        slots=slots,
        fresh=_upload(np.array(fresh, dtype=np.int64), device),
        groups=tensors,
        drawing=_upload(np.array(draws, dtype=np.int64), device),
    )


def _single(chunk: Chunk, row: int, window: int | None) -> SingleToken:
    """One token; the pages that lie wholly before its window are not looked at."""
    first = 0 if window is None else max(chunk.end - window, 0)
    length, skipped = chunk.end - first, first // PAGE_SIZE
    held = chunk.table.pages[skipped : _pages_seen(chunk)]
    first -= skipped * PAGE_SIZE
    rows, apart = slice(row, row + 1), None
    if held[-1] - held[0] == len(held) - 1 and held == list(range(held[0], held[-1] + 1)):
        first += held[0] * PAGE_SIZE
    else:
        apart = torch.tensor(held)
    return SingleToken(rows, apart, first, length)


def _fill(columns: Ints, chunk: Chunk) -> None:
    """Ids, positions and slots of a chunk into [3, count]."""
    start, count, pages = chunk.start, chunk.count, chunk.table.pages
    if count == 1:
        columns[0, 0] = chunk.sequence.ids[start]
        columns[1, 0] = start
        columns[2, 0] = pages[start // PAGE_SIZE] * PAGE_SIZE + start % PAGE_SIZE
        return
    columns[0] = chunk.sequence.ids[start : start + count]
    at = columns[1]
    at[:] = np.arange(start, start + count)
    columns[2] = np.array(pages, dtype=np.int64)[at // PAGE_SIZE] * PAGE_SIZE + at % PAGE_SIZE


def _padded_pages(group: list[Chunk], padding_page: int) -> Ints:
    """[batch * P]: the pages that each sequence reads, all padded to the longest.

    The scheduler has grown every table to the end of its chunk.
    """
    if len(group) == 1:
        return np.array(group[0].table.pages[: _pages_seen(group[0])], dtype=np.int64)
    width = max(_pages_seen(chunk) for chunk in group)
    pages = np.full((len(group), width), padding_page, dtype=np.int64)
    for row, chunk in enumerate(group):
        held = chunk.table.pages[:width]
        pages[row, : len(held)] = held
    return pages.reshape(-1)


def _first_slot(pages: Ints) -> int | None:
    """Of pages that follow each other; None if they do not."""
    if (pages[1:] - pages[:-1] != 1).any():
        return None
    return int(pages[0]) * PAGE_SIZE


def _hidden(group: list[Chunk], length: int, window: int | None) -> NDArray[np.bool_] | None:
    """[batch, tokens, length]: keys that lie behind their query, or too far before it.

    None if none does.
    """
    new = group[0].count
    sees_all = window is None or length <= window
    if sees_all and new == 1 and all(chunk.start + 1 == length for chunk in group):
        return None
    starts = np.array([chunk.start for chunk in group])
    seen = (starts[:, None] + np.arange(new))[:, :, None]
    keys = np.arange(length)
    behind: NDArray[np.bool_] = keys > seen
    return behind if window is None else behind | (keys <= seen - window)


def _mask(
    hidden: NDArray[np.bool_], heads_per_key: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Minus infinity where hidden: [batch, 1, heads_per_key * tokens, length]."""
    where = _upload(hidden, device)
    mask = torch.zeros(where.shape, dtype=dtype, device=device)
    return mask.masked_fill_(where, -torch.inf).repeat(1, heads_per_key, 1).unsqueeze(1)


def _upload(values: NDArray[Any], device: torch.device) -> torch.Tensor:
    """The tensor of an array; on a CPU the same memory."""
    tensor = torch.from_numpy(values)
    return tensor if device.type == "cpu" else tensor.to(device)


def _pages_seen(chunk: Chunk) -> int:
    return pages_for(chunk.end)
