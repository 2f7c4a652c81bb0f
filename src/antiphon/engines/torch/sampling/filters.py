"""Min-p, then top-k, then top-p, as the least value that a token must have to be kept.

So tokens that tie with the last one kept are kept. Every row is handled by itself: what is added up
is added in the row's own order, however much wider the rows beside it are.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.engines.torch.sampling.head import (
    LOWEST,
    Floats,
    Ints,
    floor_of,
    head_values,
    weight_of,
)

Truths: TypeAlias = NDArray[np.bool_]

NOTHING = np.float32(np.inf)
"""The floor of a row that is not looked at."""
HEAD = 256
"""Likeliest tokens that top-p looks at first; they nearly always hold the mass."""


def least_kept(logits: Floats, best: Floats, min_p: Floats, top_k: Ints, top_p: Floats) -> Floats:
    """The least value kept in each row [rows] of the logits [rows, vocab].

    ``best`` is the greatest of each row; the settings are [rows], 0, 0 and 1 where they are off.
    """
    least = np.full(len(logits), LOWEST)
    on = min_p > 0
    if on.any():
        least[on] = best[on] + np.log(min_p[on])
    on = top_k > 0
    if on.any():
        least = np.maximum(least, _kth(logits, np.maximum(top_k, 1), on))
    on = top_p < 1
    if on.any():
        least = np.where(on, _top_p(logits, best, least, top_p, on), least)
    return least


def _kth(logits: Floats, count: Ints, on: Truths) -> Floats:
    """The ``count``-th greatest of each row that is ``on``; lower where it has fewer finite ones.

    Anything, at most that, in other rows.
    """
    head = head_values(logits, np.where(on, floor_of(logits, count), NOTHING))
    kth: Floats = head[np.arange(len(head)), np.minimum(count, head.shape[1]) - 1]
    return kth


def _top_p(logits: Floats, best: Floats, least: Floats, mass: Floats, on: Truths) -> Floats:
    """The value at which the likeliest tokens hold ``mass`` of what is at least ``least``.

    Anything in rows that are not ``on``.
    """
    whole = on & (least == LOWEST)
    floor = np.where(on, least, NOTHING)
    total = np.full(len(logits), np.nan)
    if whole.any():
        floor[whole] = floor_of(logits, np.full(len(logits), HEAD))[whole]
        total[whole] = weight_of(logits, best, whole)[whole]
    result, enough = _reached(head_values(logits, floor), best, total, mass)
    # All that are rarer than this come to less than 1 - mass together.
    rare = np.log(np.maximum(1 - mass, np.finfo(np.float32).eps) / logits.shape[1])
    floor = np.maximum(best + np.log(total) + rare - 0.1, LOWEST).astype(np.float32)
    for row in (whole & ~enough).nonzero()[0]:  # one by one: these heads are thousands long
        one = slice(row, row + 1)
        head = head_values(logits[one], floor[one])
        result[one] = _reached(head, best[one], total[one], mass[one])[0]
    return result


def _reached(
    head: Floats, best: Floats, total: NDArray[np.float64], mass: Floats
) -> tuple[Floats, Truths]:
    """The value of the token that completes the mass in each row, and whether there is one.

    ``total`` is the weight of the row, where its likeliest token weighs 1; NaN: that of the head.
    """
    sums = np.exp(head - best[:, None]).cumsum(-1, dtype=np.float64)
    wanted = mass * np.where(np.isnan(total), sums[:, -1], total)
    before = (sums < wanted[:, None]).sum(-1)
    last = np.minimum(before, head.shape[1] - 1)
    return np.maximum(head[np.arange(len(head)), last], LOWEST), before < head.shape[1]
