"""Random numbers: the paper's known answers, and noise without the fp32 trap."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.sampling.head import Floats
from antiphon.engines.torch.sampling.philox import LARGEST_NOISE, gumbel, gumbel_at, noise, philox

# Random123, kat_vectors: counter, key, result of philox4x32 with 10 rounds.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
MASK = 2**32 - 1


def words(text: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint64)


def plain_philox(counter: list[int], key: list[int]) -> list[int]:
    """The paper's definition, in Python's own integers."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & MASK, (left >> 32) ^ c3 ^ k1, left & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return [c0, c1, c2, c3]


def all_noise(seeds: list[int], positions: list[int], vocab_size: int) -> Floats:
    """[rows, vocab_size]."""
    rows = gumbel(
        np.array(seeds, dtype=np.uint64), np.array(positions, dtype=np.uint64), vocab_size
    )
    return np.stack([row.copy() for row in rows])


def test_known_answers() -> None:
    for counter, key, result in KNOWN_ANSWERS:
        assert philox(words(counter), words(key)).tolist() == words(result).tolist()


WORDS = st.integers(0, MASK)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=5))
def test_many_at_a_time_are_those_of_the_definition(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, dtype=np.uint64).T
    result = philox(columns[:4].copy(), columns[4:].copy())
    assert result.T.tolist() == [plain_philox(list(row[:4]), list(row[4:])) for row in rows]


def test_noise_is_never_plus_infinity() -> None:
    extremes = np.array([0, 1, 2**31, 2**32 - 129, 2**32 - 128, 2**32 - 1], dtype=np.uint32)
    values = noise(extremes)
    assert not np.isnan(values).any()
    assert (values < LARGEST_NOISE).all()
    assert values[0] > LARGEST_NOISE - 0.01, "the largest noise belongs to the smallest word"


def test_noise_depends_on_seed_and_position_alone() -> None:
    seeds, positions = [0, 1, 2**32, 2**64 - 1, 1], [5, 5, 5, 2**20, 6]
    together = all_noise(seeds, positions, 101)
    for row, (seed, position) in enumerate(zip(seeds, positions, strict=True)):
        assert np.array_equal(all_noise([seed], [position], 101)[0], together[row])
    assert len({tuple(row) for row in together.tolist()}) == len(seeds)
    assert np.array_equal(all_noise([1], [5], 7)[0], together[1, :7])


@given(st.integers(0, 2**64 - 1), st.integers(0, MASK), st.integers(1, 400), st.data())
def test_the_noise_of_single_tokens_is_bit_by_bit_that_of_all(
    seed: int, position: int, vocab_size: int, data: st.DataObject
) -> None:
    everything = all_noise([seed], [position], vocab_size)[0]
    tokens = np.array(data.draw(st.lists(st.integers(0, vocab_size - 1), min_size=1, max_size=60)))
    same = np.ones(len(tokens), dtype=np.uint64)
    singles = gumbel_at(np.uint64(seed) * same, np.uint64(position) * same, tokens)
    assert singles.tobytes() == everything[tokens].tobytes()


def test_noise_is_gumbel_distributed() -> None:
    values = all_noise([11], [0], 100_000)[0].astype(np.float64)
    quantiles = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    expected = -np.log(-np.log(quantiles))
    assert np.allclose(np.quantile(values, quantiles), expected, atol=0.05)
