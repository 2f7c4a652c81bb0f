"""Random numbers that depend on seed and position alone.

Philox4x32-10: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). Key: the seed's
low and high word. Counter: (token div 4, position, 0, 0); word: token mod 4. So a draw is the same
in any batch, slot or order of steps, and on any device.

On the host it is numpy's: a pass over its 64-bit integers takes half the time of torch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
"""Words of 32 bits, each in 64, because the product of two is wanted whole."""
Floats: TypeAlias = NDArray[np.float32]

ROUNDS = 10
MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], dtype=np.uint64)
KEY_STEPS = np.array([0x9E3779B9, 0xBB67AE85], dtype=np.uint64)
MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
LARGEST_NOISE = 22.875
"""Above any noise: that of word 0 is ``33 * log(2)``, 22.874."""


def philox(counter: Words, key: Words) -> Words:
    """Counters [4, ...] and keys [2, ...] to words [4, ...], all of one shape behind that."""
    even, odd = np.array(counter[0::2]), np.array(counter[1::2])
    _rounds(even, odd, key, np.empty_like(even))
    return np.stack((even[0], odd[0], even[1], odd[1]))


def _rounds(even: Words, odd: Words, key: Words, product: Words) -> None:
    """Ten rounds in place. ``even`` and ``odd`` are the words (0, 2) and (1, 3): both [2, ...].

    A round multiplies the one pair, into ``product``, and mixes the other in.
    """
    multipliers, steps = (
        constant.reshape(2, *(1,) * (even.ndim - 1)) for constant in (MULTIPLIERS, KEY_STEPS)
    )
    crossed = product[::-1]
    for _ in range(ROUNDS):
        np.multiply(even, multipliers, out=product)
        np.right_shift(crossed, HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, key, out=even)
        np.bitwise_and(crossed, MASK, out=odd)
        key = (key + steps) & MASK


def gumbel(seeds: Words, positions: Words, vocab_size: int) -> Iterator[Floats]:
    """Gumbel noise of every token for each (seed, position) [R]: float32 [vocab_size], R times.

    In memory taken once, the noise included: keep a copy of what is wanted longer. What the rounds
    touch stays in the cache of a core, and fresh pages cost more than the arithmetic.
    """
    blocks = -(-vocab_size // 4)
    even, odd, product = (np.empty((2, blocks), dtype=np.uint64) for _ in range(3))
    words, values = np.empty((blocks, 4), dtype=np.uint32), np.empty(vocab_size, dtype=np.float32)
    counter, keys = np.arange(blocks), keys_of(seeds)
    for row, position in enumerate(positions):
        even[0], even[1], odd[0], odd[1] = counter, 0, position, 0
        _rounds(even, odd, keys[:, row, None], product)
        for word, plane in enumerate((even[0], odd[0], even[1], odd[1])):
            words[:, word] = plane
        yield noise(words.ravel()[:vocab_size], out=values)


def gumbel_at(seeds: Words, positions: Words, tokens: NDArray[np.int64]) -> Floats:
    """The noise of single tokens, each with its seed and position: float32 [N], all three [N]."""
    counter = np.zeros((4, len(tokens)), dtype=np.uint64)
    counter[0], counter[1] = tokens >> 2, positions
    words = philox(counter, keys_of(seeds))
    return noise(words[tokens & 3, np.arange(len(tokens))].astype(np.uint32))


def keys_of(seeds: Words) -> Words:
    """Seeds [N] of 64 bits as keys [2, N]."""
    return np.stack((seeds & MASK, seeds >> HALF))


def noise(words: NDArray[np.uint32], out: Floats | None = None) -> Floats:
    """Gumbel noise of uniform words of 32 bits; float32, of the same shape, in ``out`` if given.

    log1p keeps it finite or minus infinity. With the textbook's -log(-log(u)) the words next to
    2**32 round to u = 1, the noise is plus infinity and an impossible token wins.
    """
    value = np.empty(words.shape, dtype=np.float32) if out is None else out
    value[...] = words
    value += np.float32(0.5)
    value *= np.float32(-(2.0**-32))
    with np.errstate(divide="ignore"):
        np.log1p(value, out=value)
    np.negative(value, out=value)
    np.log(value, out=value)
    return np.negative(value, out=value)
