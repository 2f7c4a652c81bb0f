"""The sampler against plain-Python definitions, and its draws against exact distributions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence as Rows
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.sampling.filters import HEAD, min_p, top_k, top_p
from antiphon.engines.torch.sampling.philox import gumbel
from antiphon.engines.torch.sampling.sampler import sample
from antiphon.engines.torch.sequence import Sequence
from engines.torch.requests import a_request

LOGITS = [2.0, 1.5, 1.5, 0.3, 0.0, -0.5, -0.5, -1.0, -2.0, -4.0]
FILTERS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"temperature": 1.8, "top_k": 2},
    {"top_k": 4},
    {"top_p": 0.8},
    {"min_p": 0.15},
    {"temperature": 0.9, "min_p": 0.02, "top_k": 6, "top_p": 0.9},
    {"logit_bias": {0: -3.0, 9: 5.0}, "top_k": 3},
    {"allowed_ids": (1, 4, 9)},
    {"presence": 0.5, "frequency": 0.4, "repetition": 1.3},
]


def a_sequence(output: Rows[int] = (), stops: Rows[int] = (), **changes: Any) -> Sequence:
    request = a_request(1, [3, 3, 5], stop_ids=tuple(stops), **changes)
    sequence = Sequence.of(request, 1_000, frozenset())
    sequence.ids.extend(output)
    return sequence


def softmax(logits: Rows[float]) -> list[float]:
    best = max(logits)
    weights = [math.exp(value - best) for value in logits]
    return [weight / sum(weights) for weight in weights]


def only(logits: Rows[float], kept: Rows[bool]) -> list[float]:
    return [value if keep else -math.inf for value, keep in zip(logits, kept, strict=True)]


def expected_top_p(logits: list[float], mass: float) -> list[float]:
    shares, total, threshold = softmax(logits), 0.0, -math.inf
    for value, share in sorted(zip(logits, shares, strict=True), reverse=True):
        if total >= mass:
            break
        total, threshold = total + share, value
    return only(logits, [value >= threshold for value in logits])


def expected_distribution(sequence: Sequence) -> list[float]:
    """The whole order of the sampler, one sequence, in plain Python."""
    request, logits = sequence.request, list(LOGITS)
    if request.allowed_ids is not None:
        logits = only(logits, [token in request.allowed_ids for token in range(len(logits))])
    logits = [value + request.logit_bias.get(token, 0) for token, value in enumerate(logits)]
    if sequence.drawn < request.min_tokens:
        logits = only(logits, [token not in sequence.stopping_ids for token in range(len(logits))])
    for token in set(sequence.ids):
        factor = request.repetition
        logits[token] = logits[token] / factor if logits[token] > 0 else logits[token] * factor
    for token, count in Counter(sequence.output).items():
        logits[token] -= request.frequency * count + request.presence
    logits = [value / request.temperature for value in logits]
    if request.min_p:
        shares = softmax(logits)
        logits = only(logits, [share >= request.min_p * max(shares) for share in shares])
    if request.top_k:
        threshold = sorted(logits, reverse=True)[request.top_k - 1]
        logits = only(logits, [value >= threshold for value in logits])
    return softmax(expected_top_p(logits, request.top_p) if request.top_p < 1 else logits)


@pytest.mark.parametrize("settings", FILTERS, ids=str)
def test_draws_follow_the_exact_distribution(settings: dict[str, Any]) -> None:
    draws = 10_000
    sequences = [a_sequence(output=[0, 0, 4], seed=seed, **settings) for seed in range(draws)]
    tokens = [one.token for one in sample(torch.tensor([LOGITS] * draws), sequences)]
    expected = expected_distribution(sequences[0])
    counts = Counter(tokens)
    possible = [token for token, share in enumerate(expected) if share > 0]
    assert set(counts) <= set(possible)
    chi_square = sum(
        (counts[token] - draws * expected[token]) ** 2 / (draws * expected[token])
        for token in possible
    )
    degrees = len(possible) - 1
    # Five standard deviations of the chi-square distribution; the seeds are fixed.
    assert chi_square < degrees + 5 * math.sqrt(2 * degrees) + 1


RANDOM_LOGITS = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=2)


@given(RANDOM_LOGITS, st.integers(1, 50))
def test_top_k_keeps_ties(logits: list[float], count: int) -> None:
    kept = top_k(torch.tensor([logits]), torch.tensor([count]))[0]
    threshold = sorted(logits, reverse=True)[min(count, len(logits)) - 1]
    assert kept.tolist() == only(logits, [value >= threshold for value in logits])


@given(RANDOM_LOGITS, st.floats(0.01, 0.99))
def test_top_p_keeps_the_fewest_that_reach_the_mass(logits: list[float], mass: float) -> None:
    kept = top_p(torch.tensor([logits]), torch.tensor([mass]))[0]
    shares = softmax(logits)
    chosen = [share for share, value in zip(shares, kept.tolist(), strict=True) if value > -1e9]
    assert sum(chosen) > mass - 1e-5
    without_last = sum(share for share in chosen if share > min(chosen) + 1e-9)
    assert without_last < mass + 1e-5
    assert max(share for share in shares) in chosen


@given(RANDOM_LOGITS, st.floats(0.01, 1.0))
def test_min_p_is_relative_to_the_likeliest(logits: list[float], ratio: float) -> None:
    kept = min_p(torch.tensor([logits]), torch.tensor([ratio]))[0]
    shares = softmax(logits)
    for share, value in zip(shares, kept.tolist(), strict=True):
        if abs(share - ratio * max(shares)) > 1e-6:
            assert (value > -1e9) == (share > ratio * max(shares))


def test_min_p_keeps_ties() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 0.0]])
    assert min_p(logits, torch.tensor([1.0])).tolist() == [[-math.inf, 3.0, 3.0, -math.inf]]


def test_top_p_beyond_its_head_is_exact() -> None:
    """A flat distribution needs far more tokens than are looked at first."""
    logits = torch.randn(2, 8 * HEAD, generator=torch.Generator().manual_seed(3)) * 0.1
    kept = top_p(logits, torch.tensor([0.9, 0.01]))
    shares = logits.double().softmax(-1)
    for row, mass in enumerate((0.9, 0.01)):
        chosen = shares[row][kept[row] > -torch.inf]
        assert chosen.sum() >= mass - 1e-5
        assert chosen.sum() - chosen.min() < mass + 1e-5
    assert torch.equal(top_p(logits[1:], torch.tensor([0.01]))[0], kept[1])


def test_a_row_is_drawn_alike_alone_and_in_a_batch() -> None:
    logits = torch.randn(32, 500, generator=torch.Generator().manual_seed(1))
    sequences = [
        a_sequence(
            output=[1] * (row % 5),
            seed=row * 977,
            temperature=(0.0, 0.6, 1.0, 1.7)[row % 4],
            top_p=(1.0, 0.8)[row % 2],
            top_k=(0, 5, 50)[row % 3],
            min_p=(0.0, 0.1)[row // 16],
            logprobs=(None, 3)[row % 2],
        )
        for row in range(32)
    ]
    together = sample(logits.clone(), sequences)
    for row, sequence in enumerate(sequences):
        assert sample(logits[row : row + 1].clone(), [sequence]) == [together[row]]


def test_the_draw_is_gumbel_argmax_at_the_absolute_position() -> None:
    logits = torch.randn(40, 300, generator=torch.Generator().manual_seed(2))
    sequences = [a_sequence(output=[1] * row, seed=42, temperature=0.5) for row in range(40)]
    tokens = [one.token for one in sample(logits, sequences)]
    positions = range(3, 43)  # the prompt has three tokens
    noise = gumbel([42] * 40, positions, 300, torch.device("cpu"))
    assert tokens == (logits / 0.5 + noise).argmax(-1).tolist()
    assert len(set(tokens)) > 10


def test_greedy_takes_the_lowest_id_of_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0]])
    sequences = [a_sequence(temperature=temperature) for temperature in (0.0, 9e-6)]
    assert [one.token for one in sample(logits, sequences)] == [1, 0]


def test_logprobs_are_raw_and_ties_are_in_order_of_id() -> None:
    sequence = a_sequence(temperature=0.0, logprobs=4, logit_bias={9: 100.0})
    (drawn,) = sample(torch.tensor([LOGITS]), [sequence])
    exact = [math.log(share) for share in softmax(LOGITS)]
    assert drawn.token == 9
    assert drawn.logprob == pytest.approx(exact[9], abs=1e-5)
    assert [token for token, _ in drawn.top] == [0, 1, 2, 3]
    assert [value for _, value in drawn.top] == pytest.approx(exact[:4], abs=1e-5)


def test_logprobs_of_zero_alternatives() -> None:
    (drawn,) = sample(torch.tensor([LOGITS]), [a_sequence(logprobs=0)])
    assert drawn.logprob is not None
    assert drawn.top == ()


def test_a_bias_cannot_bring_back_what_is_not_allowed() -> None:
    sequence = a_sequence(temperature=0.0, allowed_ids=(7, 8), logit_bias={0: 100.0, 8: 5.0})
    assert sample(torch.tensor([LOGITS]), [sequence])[0].token == 8


def test_stopping_ids_wait_for_min_tokens() -> None:
    logits = torch.tensor([LOGITS])
    early = a_sequence(output=[4], stops=[0, 1], temperature=0.0, min_tokens=2)
    late = a_sequence(output=[4, 4], stops=[0, 1], temperature=0.0, min_tokens=2)
    assert sample(logits, [early])[0].token == 2
    assert sample(logits, [late])[0].token == 0


def test_sampling_leaves_the_logits_alone() -> None:
    logits = torch.tensor([LOGITS] * 2)
    sample(logits, [a_sequence(temperature=0.5, top_k=3, logit_bias={1: 2.0}), a_sequence()])
    assert torch.equal(logits, torch.tensor([LOGITS] * 2))
