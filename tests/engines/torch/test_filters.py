"""Min-p, top-k and top-p against plain-Python definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence as Rows

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.sampling.filters import HEAD, least_kept
from antiphon.engines.torch.sampling.head import GROUP, Floats, best_ids, floor_of, head_values

RANDOM_LOGITS = st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=2)


def kept(
    logits: Rows[Rows[float]] | Floats,
    min_p: Rows[float] | float = 0.0,
    top_k: Rows[int] | int = 0,
    top_p: Rows[float] | float = 1.0,
) -> list[list[bool]]:
    """Which tokens of each row stay; one setting for all rows, or one each."""
    rows = np.array(logits, dtype=np.float32)
    least = least_kept(
        rows,
        rows.max(-1),
        np.broadcast_to(np.array(min_p, dtype=np.float32), len(rows)),
        np.broadcast_to(np.array(top_k), len(rows)),
        np.broadcast_to(np.array(top_p, dtype=np.float32), len(rows)),
    )
    found: list[list[bool]] = (rows >= least[:, None]).tolist()
    return found


def softmax(logits: Rows[float]) -> list[float]:
    weights = [math.exp(value - max(logits)) for value in logits]
    return [weight / sum(weights) for weight in weights]


@given(RANDOM_LOGITS, st.integers(1, 50))
def test_top_k_keeps_ties(logits: list[float], count: int) -> None:
    threshold = sorted(logits, reverse=True)[min(count, len(logits)) - 1]
    assert kept([logits], top_k=count) == [[value >= threshold for value in logits]]


@given(RANDOM_LOGITS, st.floats(0.01, 0.99))
def test_top_p_keeps_the_fewest_that_reach_the_mass(logits: list[float], mass: float) -> None:
    shares = softmax(logits)
    (found,) = kept([logits], top_p=mass)
    chosen = [share for share, keeps in zip(shares, found, strict=True) if keeps]
    assert sum(chosen) > mass - 1e-5
    without_last = sum(share for share in chosen if share > min(chosen) + 1e-9)
    assert without_last < mass + 1e-5
    assert max(shares) in chosen


@given(RANDOM_LOGITS, st.floats(0.01, 1.0))
def test_min_p_is_relative_to_the_likeliest(logits: list[float], ratio: float) -> None:
    shares = softmax(logits)
    for share, keeps in zip(shares, kept([logits], min_p=ratio)[0], strict=True):
        if abs(share - ratio * max(shares)) > 1e-6:
            assert keeps == (share > ratio * max(shares))


def test_min_p_keeps_ties() -> None:
    assert kept([[1.0, 3.0, 3.0, 0.0]], min_p=1.0) == [[False, True, True, False]]


def test_top_p_counts_only_what_the_filters_before_it_left() -> None:
    """Half of the mass of all would take two tokens, half of that of two takes one."""
    logits = [1.0, 0.9, 0.8, 0.7, 0.6]
    assert sum(kept([logits], top_p=0.5)[0]) == 3
    assert sum(kept([logits], top_k=2, top_p=0.5)[0]) == 1
    assert sum(kept([logits], min_p=0.85, top_p=0.5)[0]) == 1


def test_top_p_beyond_its_head_is_exact() -> None:
    """Flat distributions need far more tokens than are looked at first, steep ones do not."""
    vocab = 2 * HEAD * GROUP  # more groups than the head has tokens, or it would be the whole row
    spread = np.array([0.1, 0.1, 0.1, 6.0, 6.0], dtype=np.float32)[:, None]
    logits = np.random.default_rng(3).normal(size=(5, vocab)).astype(np.float32) * spread
    masses = [0.9, 0.01, 0.9999, 0.9, 0.5]
    found = np.array(kept(logits, top_p=masses))
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(-1, keepdims=True)
    assert found.sum(-1).tolist()[0] > HEAD > found.sum(-1).tolist()[3]
    for row, mass in enumerate(masses):
        chosen = shares[row][found[row]]
        assert chosen.sum() >= mass - 1e-5
        assert chosen.sum() - chosen.min() < mass + 1e-5
        assert kept(logits[row : row + 1], top_p=mass) == found[row : row + 1].tolist()


@given(
    rows=st.integers(1, 5),
    vocab=st.integers(1, 3 * GROUP),
    seed=st.integers(0, 2**32),
    count=st.integers(0, 20),
    ties=st.booleans(),
)
def test_the_best_of_a_row(rows: int, vocab: int, seed: int, count: int, ties: bool) -> None:
    """Long rows too, whose head is found by groups."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(rows, vocab * 7)).astype(np.float32)
    values = np.round(values) if ties else values
    values[:, 3::11] = -np.inf
    ids, best = best_ids(values, count)
    for row in range(rows):
        finite = [token for token in range(vocab * 7) if values[row, token] > -np.inf]
        order = sorted(finite, key=lambda token: (-values[row, token], token))[:count]
        assert ids[row, : len(order)].tolist() == order
        assert best[row, : len(order)].tolist() == values[row, order].tolist()
        assert (best[row, len(order) :] == -np.inf).all()


@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32), st.integers(1, 500))
def test_the_bound_of_a_head_is_reached_by_as_many_as_it_says(
    rows: int, groups: int, seed: int, count: int
) -> None:
    values = np.random.default_rng(seed).normal(size=(rows, groups * GROUP + 5))
    logits = values.astype(np.float32)
    floor = floor_of(logits, np.full(rows, count))
    for row, head in enumerate(head_values(logits, floor)):
        reached = sorted(logits[row][logits[row] >= floor[row]].tolist(), reverse=True)
        assert len(reached) >= min(count, logits.shape[1])
        assert head[: len(reached)].tolist() == reached
