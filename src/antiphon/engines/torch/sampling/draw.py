"""Drawing by Gumbel noise: add it to the logits and take the greatest.

The noise of all tokens costs more than everything else in the sampler together, and most tokens
cannot win. Those that were filtered out cannot, and none of them is looked at; and noise is
bounded, so what lies far enough below the likeliest token cannot either. What is left out never
changes the draw: it is that of the noise of all tokens, bit by bit.
"""

from __future__ import annotations

import numpy as np

from antiphon.engines.torch.sampling.head import Floats, Ints
from antiphon.engines.torch.sampling.philox import LARGEST_NOISE, Words, gumbel, gumbel_at

FEW = 8
"""A row is drawn by single tokens where fewer than one in so many of them can win: the noise of a
single one costs that of the four that share a counter."""
ANYWAY = 64
"""So few are drawn singly whatever the vocabulary: together with those of other rows."""
LEAST_NOISE = -2.875
"""Below any noise that is finite: that of the word before those that round to 1 is -2.812."""
REACH = LARGEST_NOISE - LEAST_NOISE
ROUNDING = 2.0**-21
"""Above the rounding of two sums, relative to what is added."""


def draw(logits: Floats, best: Floats, least: Floats, seeds: Words, positions: Words) -> Ints:
    """A token of each row [rows] of the logits [rows, vocab], which have their temperature.

    ``best`` is the greatest of each row and finite; tokens below ``least`` are not drawn.
    """
    floor = best - np.float32(REACH) - np.abs(best) * np.float32(ROUNDING)
    floor = np.maximum(floor, least)
    tokens = np.empty(len(logits), dtype=np.int64)
    few, many, able = list[int](), list[int](), list[Ints]()
    for row, (values, bound) in enumerate(zip(logits, floor, strict=True)):
        reaches = values >= bound
        count = np.count_nonzero(reaches)
        if count <= ANYWAY or count * FEW < logits.shape[1]:
            few.append(row)
            able.append(reaches.nonzero()[0])
        else:
            many.append(row)
    if few:
        scores = _among(logits, few, able, seeds, positions, tokens)
        # Short of that the likeliest token itself is out, and the reach is not what it was.
        many += np.array(few)[scores < best[few] + np.float32(LEAST_NOISE)].tolist()
    for row, noise in zip(many, gumbel(seeds[many], positions[many], logits.shape[1]), strict=True):
        noise += logits[row]
        np.copyto(noise, -np.inf, where=logits[row] < least[row])
        token = noise.argmax()
        # One word in 33 million has no noise: it matters where that token alone may be drawn.
        tokens[row] = token if noise[token] > -np.inf else logits[row].argmax()
    return tokens


def _among(
    logits: Floats,
    rows: list[int],
    able: list[Ints],
    seeds: Words,
    positions: Words,
    tokens: Ints,
) -> Floats:
    """Put the draws of ``rows`` into ``tokens``, of those ``able`` to win in each of them.

    What each draw scores: [len(rows)].
    """
    each, row_of = np.concatenate(able), np.repeat(rows, [len(some) for some in able])
    scores = gumbel_at(seeds[row_of], positions[row_of], each)
    scores += logits[row_of, each]
    won, first = np.empty(len(rows), dtype=np.float32), 0
    for index, (row, some) in enumerate(zip(rows, able, strict=True)):
        mine = scores[first : first + len(some)]
        best = mine.argmax()
        tokens[row], won[index] = some[best], mine[best]
        first += len(some)
    return won
