"""Random numbers: the paper's known answers, and noise without the fp32 trap."""

from __future__ import annotations

import torch

from antiphon.engines.torch.sampling.philox import gumbel, noise, philox

# Random123, kat_vectors: counter, key, result of philox4x32 with 10 rounds.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
CPU = torch.device("cpu")


def words(text: str) -> torch.Tensor:
    return torch.tensor([int(word, 16) for word in text.split()])


def test_known_answers() -> None:
    for counter, key, result in KNOWN_ANSWERS:
        assert philox(words(counter), words(key)).tolist() == words(result).tolist()


def test_noise_is_never_plus_infinity() -> None:
    extremes = torch.tensor([0, 1, 2**31, 2**32 - 129, 2**32 - 128, 2**32 - 1])
    values = noise(extremes)
    assert not values.isnan().any()
    assert (values < 23).all()
    assert values[0] > 22, "the largest noise belongs to the smallest word"


def test_noise_depends_on_seed_and_position_alone() -> None:
    seeds, positions = [0, 1, 2**32, 2**64 - 1, 1], [5, 5, 5, 2**20, 6]
    together = gumbel(seeds, positions, 101, CPU)
    for row, (seed, position) in enumerate(zip(seeds, positions, strict=True)):
        assert torch.equal(gumbel([seed], [position], 101, CPU)[0], together[row])
    assert len({tuple(row) for row in together.tolist()}) == len(seeds)
    assert torch.equal(gumbel([1], [5], 7, CPU), gumbel([1], [5], 101, CPU)[:, :7])


def test_noise_is_gumbel_distributed() -> None:
    values = gumbel([11], [0], 100_000, CPU)[0].double()
    quantiles = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9, 0.99], dtype=torch.float64)
    expected = -torch.log(-torch.log(quantiles))
    assert torch.allclose(values.quantile(quantiles), expected, atol=0.05)
