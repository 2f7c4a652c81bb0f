"""The likeliest tokens of each row, found without sorting the row.

A bound first: of the greatest values of G groups of tokens, k are at least the k-th of them, so at
least k tokens of the row are. What reaches the bound is the head of the row, every token of it.
It is a few more than k of them, and only those are sorted.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.engines.port import PAD_ID

Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]

LOWEST = np.finfo(np.float32).min
"""What every finite value reaches, and a masked token does not."""
GROUP = 64
"""Tokens of a group: 768 groups of a vocabulary of 49,152."""


def floor_of(values: Floats, count: Ints) -> Floats:
    """A bound [rows] that at least ``count`` [rows] of the finite values [rows, vocab] reach.

    Where there are fewer groups than that, the lowest: all finite values reach it.
    """
    rows, vocab = values.shape
    groups = vocab // GROUP
    if groups == 0:
        return np.full(rows, LOWEST)
    best = values[:, : groups * GROUP].reshape(rows, GROUP, groups).max(1)
    best.sort(axis=1)
    bound = best[np.arange(rows), np.maximum(groups - count, 0)]
    return np.where(count <= groups, np.maximum(bound, LOWEST), LOWEST)


def reaching(values: Floats, floor: Floats) -> list[Ints]:
    """The tokens of each row whose value is at least the row's floor, in ascending order."""
    # Row by row: one array of truth for all rows is more than the allocator keeps at hand.
    return [(row >= bound).nonzero()[0] for row, bound in zip(values, floor, strict=True)]


def head_values(values: Floats, floor: Floats) -> Floats:
    """What reaches the floor, the greatest first: [rows, most of a row], then minus infinity."""
    able = reaching(values, floor)
    head = np.full((len(values), max(1, *map(len, able))), np.inf, dtype=np.float32)
    for row, tokens in enumerate(able):
        head[row, : len(tokens)] = -values[row, tokens]
    head.sort(axis=1)
    return np.negative(head, out=head)


def best_ids(values: Floats, count: int) -> tuple[Ints, Floats]:
    """The ``count`` greatest of each row, best first: ids and values [rows, count].

    The lower id comes first among equals. Where a row has fewer finite values, ``PAD_ID`` and
    minus infinity.
    """
    ids = np.full((len(values), count), PAD_ID)
    best = np.full((len(values), count), -np.inf, dtype=np.float32)
    if count:
        floor = floor_of(values, np.full(len(values), count))
        for row, tokens in enumerate(reaching(values, floor)):
            found = values[row, tokens]
            # The ids ascend, so a stable sort leaves equals in that order.
            order = np.argsort(-found, kind="stable")[:count]
            ids[row, : len(order)], best[row, : len(order)] = tokens[order], found[order]
    return ids, best


def weight_of(values: Floats, best: Floats, rows: NDArray[np.bool_] | None = None) -> Floats:
    """``exp(value - best)`` added up in each row [rows]: the likeliest token weighs 1.

    Anything in rows that are not among ``rows``, if they are given.
    """
    weights = np.empty(values.shape[1], dtype=np.float32)
    totals = np.empty(len(values), dtype=np.float32)
    for row in range(len(values)) if rows is None else rows.nonzero()[0]:
        np.subtract(values[row], best[row], out=weights)
        np.exp(weights, out=weights)
        totals[row] = weights.sum()
    return totals
