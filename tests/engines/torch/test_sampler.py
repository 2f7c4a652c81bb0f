"""The sampler against plain-Python definitions, and its draws against exact distributions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence as Rows
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import PAD_ID, GrammarSpec
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.sampling.philox import gumbel
from antiphon.engines.torch.sampling.sampler import Sampler
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
    {"temperature": 0.2, "min_p": 1e-3},
    {"temperature": 0.06},
    {"presence": 0.5, "frequency": 0.4, "repetition": 1.3},
]
CPU = torch.device("cpu")


def a_sequence(
    output: Rows[int] = (), stops: Rows[int] = (), *, slot: int = 0, **changes: Any
) -> Sequence:
    request = a_request(1, [3, 3, 5], stop_ids=tuple(stops), **changes)
    sequence = Sequence.of(request, 1_000, frozenset())
    sequence.ids.extend(output)
    sequence.slot = slot
    return sequence


def sample(
    logits: torch.Tensor, sequences: list[Sequence], masks: torch.Tensor | None = None
) -> Drawn:
    """By a sampler of its own, each sequence in the slot of its row."""
    for row, sequence in enumerate(sequences):
        sequence.slot = row
    return Sampler(len(sequences), logits.shape[1], CPU).sample(logits, sequences, masks)


def mask(vocab_size: int, *rows: Rows[int] | None) -> torch.Tensor:
    """The bits of rows that allow these ids; None: all."""
    bits = np.zeros((len(rows), -(-vocab_size // 32) * 32), dtype=np.uint8)
    for row, allowed in enumerate(rows):
        bits[row, slice(None) if allowed is None else list(allowed)] = 1
    return torch.from_numpy(np.packbits(bits, axis=1, bitorder="little").view(np.int32))


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


def penalised(logits: list[float], sequence: Sequence) -> list[float]:
    logits, request = list(logits), sequence.request
    for token in set(sequence.ids):
        factor = request.repetition
        logits[token] = logits[token] / factor if logits[token] > 0 else logits[token] * factor
    for token, count in Counter(sequence.output).items():
        logits[token] -= request.frequency * count + request.presence
    return logits


def expected_distribution(sequence: Sequence) -> list[float]:
    """The whole order of the sampler, one sequence, in plain Python."""
    request, logits = sequence.request, list(LOGITS)
    if request.allowed_ids is not None:
        logits = only(logits, [token in request.allowed_ids for token in range(len(logits))])
    logits = [value + request.logit_bias.get(token, 0) for token, value in enumerate(logits)]
    if sequence.drawn < request.min_tokens:
        logits = only(logits, [token not in sequence.stopping_ids for token in range(len(logits))])
    logits = penalised(logits, sequence)
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
    """A hundred sequences of one history, at a thousand positions or seeds each."""
    draws, rows = 100_000, 1_000
    sequences = [a_sequence(output=[0, 0, 4], **settings) for _ in range(rows)]
    expected = expected_distribution(sequences[0])
    logits, counts = torch.tensor([LOGITS] * rows), Counter[int]()
    for first in range(0, draws, rows):
        for row, sequence in enumerate(sequences):
            sequence.request.seed = (first + row) * 0x9E3779B97F4A7C15 % 2**64
        counts.update(sample(logits, sequences).token)
    possible = [token for token, share in enumerate(expected) if share > 0]
    assert set(counts) <= set(possible)
    chi_square = sum(
        (counts[token] - draws * expected[token]) ** 2 / (draws * expected[token])
        for token in possible
    )
    degrees = len(possible) - 1
    # Five standard deviations of the chi-square distribution; the seeds are fixed.
    assert chi_square < degrees + 5 * math.sqrt(2 * degrees) + 1


def test_a_row_is_drawn_alike_alone_and_in_a_batch_and_in_any_slot() -> None:
    logits = torch.randn(32, 5_000, generator=torch.Generator().manual_seed(1)) * 3
    masks = mask(5_000, *([None, range(0, 5_000, 3)] * 16))
    settings: list[dict[str, Any]] = [
        {
            "output": [1, 2, row] * (row % 5),
            "seed": row * 977,
            "temperature": (0.0, 0.2, 1.0, 1.7)[row % 4],
            "top_p": (1.0, 0.8, 0.999)[row % 3],
            "top_k": (0, 5, 0, 300, 0)[row % 5],
            "min_p": (0.0, 0.01)[row // 16],
            "logprobs": (None, 3, 7)[row % 3],
            "repetition": (1.0, 1.2)[row % 2],
            "logit_bias": ({}, {7: 2.0})[row // 8 % 2],
        }
        for row in range(32)
    ]
    sequences = [a_sequence(**changes) for changes in settings]
    together = sample(logits, sequences, masks)
    assert len(set(together.token)) > 20
    shared = Sampler(40, 5_000, CPU)
    for row, sequence in enumerate(sequences):
        sequence.slot = (row * 7 + 3) % 40
        alone = shared.sample(logits[row : row + 1], [sequence], masks[row : row + 1])
        assert alone.token == together.token[row : row + 1]
        wanted = sequence.request.logprobs
        if wanted is not None:
            assert alone.logprob is not None
            assert together.logprob is not None
            assert alone.logprob[0] == together.logprob[row]
            first = row * together.top_n
            assert alone.top_id == together.top_id[first : first + wanted]
            assert alone.top_lp == together.top_lp[first : first + wanted]


def test_slots_that_change_hands_and_sequences_that_come_back() -> None:
    """One sampler over a history of admissions and preemptions, against a new one in each step."""
    vocab, random = 200, np.random.default_rng(5)
    sampler = Sampler(4, vocab, CPU)
    sequences = [
        a_sequence(
            seed=key,
            temperature=(0.0, 0.9)[key % 2],
            repetition=(1.0, 1.4, 1.0)[key % 3],
            presence=(0.0, 0.8)[key % 2],
            frequency=(0.3, 0.0)[key % 2],
            min_tokens=key,
            logit_bias={key: 1.0},
            stops=[key],
        )
        for key in range(12)
    ]
    for _ in range(120):
        some = [int(one) for one in random.choice(12, size=random.integers(1, 5), replace=False)]
        running = [sequences[key] for key in some]
        logits = torch.from_numpy(random.normal(size=(len(some), vocab)).astype(np.float32))
        for _ in range(2):  # the same sequences twice, the second time in other slots
            for sequence, slot in zip(running, random.permutation(4), strict=False):
                sequence.slot = int(slot)
            drawn = sampler.sample(logits, running).token
            kept = [sequence.slot for sequence in running]
            assert drawn == sample(logits, running).token
            for sequence, slot, token in zip(running, kept, drawn, strict=True):
                sequence.slot = slot
                sequence.ids.append(token)


def gumbel_argmax(logits: torch.Tensor, seeds: list[int], positions: Rows[int]) -> list[int]:
    """By the noise of the whole vocabulary."""
    at = np.array(list(positions), dtype=np.uint64)
    noises = gumbel(np.array(seeds, dtype=np.uint64), at, logits.shape[1])
    rows = logits.numpy()
    return [int((row + noise).argmax()) for row, noise in zip(rows, noises, strict=True)]


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_the_draw_is_gumbel_argmax_at_the_absolute_position(spread: float) -> None:
    """Far apart, few tokens can win and only their noise is looked at."""
    logits = torch.randn(40, 300, generator=torch.Generator().manual_seed(2)) * spread
    sequences = [a_sequence(output=[1] * row, seed=42, temperature=0.5) for row in range(40)]
    tokens = sample(logits, sequences).token
    positions = range(3, 43)  # the prompt has three tokens
    assert tokens == gumbel_argmax(logits / 0.5, [42] * 40, positions)
    assert len(set(tokens)) > 10


@pytest.mark.parametrize("keep", [3, 60, 400, 1_999])
def test_what_a_filter_took_is_not_drawn_however_much_it_left(keep: int) -> None:
    """Few tokens are drawn singly, many with the noise of all."""
    logits = torch.randn(50, 2_000, generator=torch.Generator().manual_seed(4)) * 0.1
    sequences = [a_sequence(seed=seed, top_k=keep) for seed in range(50)]
    least = logits.topk(keep).values[:, -1:]
    kept = logits.masked_fill(logits < least, -torch.inf)
    tokens = sample(logits, sequences).token
    assert tokens == gumbel_argmax(kept, list(range(50)), [3] * 50)


@given(
    st.lists(
        st.one_of(st.floats(-30, 30, width=32), st.sampled_from([-math.inf, 0.0, 30.0])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([0.05, 0.3, 1.0, 2.0]),
    st.integers(0, 2**64 - 1),
)
def test_what_cannot_win_is_left_out_and_nothing_else(
    logits: list[float], temperature: float, seed: int
) -> None:
    row = torch.tensor([[*logits, 0.0]])
    token = sample(row, [a_sequence(seed=seed, temperature=temperature)]).token
    assert token == gumbel_argmax(row / temperature, [seed], [3])


def a_word_without_noise() -> tuple[int, int]:
    """A seed and a token whose word at position 3 rounds to 1: one in 33 million does."""
    size = 2**22
    for seed in range(100):
        (noise,) = gumbel(np.array([seed], np.uint64), np.array([3], np.uint64), size)
        if (lost := np.flatnonzero(noise == -np.inf)).size:
            return seed, int(lost[0])
    raise AssertionError("none found")


def test_the_only_token_that_may_be_drawn_is_drawn_even_without_noise() -> None:
    seed, token = a_word_without_noise()
    vocab = token + 2
    logits = torch.zeros(2, vocab)
    logits[1, token] = 60.0  # so likely that nothing else comes near it
    sequences = [a_sequence(seed=seed, allowed_ids=(token,)), a_sequence(seed=seed)]
    only, likeliest = sample(logits, sequences).token
    assert only == token
    assert [likeliest] == gumbel_argmax(logits[1:], [seed], [3]), "the definition, to the letter"


def test_greedy_takes_the_lowest_id_of_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0]])
    sequences = [a_sequence(temperature=temperature) for temperature in (0.0, 9e-6)]
    assert sample(logits, sequences).token == [1, 0]


def test_logprobs_are_raw_and_ties_are_in_order_of_id() -> None:
    sequence = a_sequence(temperature=0.0, logprobs=4, logit_bias={9: 100.0})
    drawn = sample(torch.tensor([LOGITS]), [sequence])
    exact = [math.log(share) for share in softmax(LOGITS)]
    assert drawn.token == [9]
    assert drawn.logprob is not None
    assert drawn.logprob == pytest.approx([exact[9]], abs=1e-5)
    assert drawn.top_id == [0, 1, 2, 3]
    assert drawn.top_lp == pytest.approx(exact[:4], abs=1e-5)


def test_rows_that_want_fewer_logprobs_or_none_are_padded() -> None:
    wanted = [2, None, 0, 20]
    sequences = [a_sequence(temperature=0.0, logprobs=count) for count in wanted]
    drawn = sample(torch.tensor([LOGITS] * 4), sequences)
    assert drawn.logprob is not None
    assert [math.isnan(value) for value in drawn.logprob] == [False, True, False, False]
    assert drawn.top_n == 20
    pad = [PAD_ID] * 20
    rows = [drawn.top_id[first : first + 20] for first in range(0, 80, 20)]
    by_rank = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert rows == [by_rank[:2] + pad[:18], pad, pad, by_rank + pad[:10]]
    finite = [value > -math.inf for value in drawn.top_lp]
    assert finite == [token != PAD_ID for token in drawn.top_id]


def test_nobody_asked_for_logprobs() -> None:
    drawn = sample(torch.tensor([LOGITS]), [a_sequence()])
    assert (drawn.logprob, drawn.top_n, drawn.top_id, drawn.top_lp) == (None, 0, [], [])


def test_a_bias_cannot_bring_back_what_is_masked_or_not_allowed() -> None:
    bias = {0: 100.0, 8: 5.0}
    allowed = a_sequence(temperature=0.0, allowed_ids=(7, 8), logit_bias=bias)
    masked = a_sequence(temperature=0.0, logit_bias=bias)
    logits = torch.tensor([LOGITS] * 2)
    assert sample(logits, [allowed, masked], mask(10, None, [7, 8, 9])).token == [8, 8]


def test_stopping_ids_wait_for_min_tokens() -> None:
    logits = torch.tensor([LOGITS])
    early = a_sequence(output=[4], stops=[0, 1], temperature=0.0, min_tokens=2)
    late = a_sequence(output=[4, 4], stops=[0, 1], temperature=0.0, min_tokens=2)
    assert sample(logits, [early]).token == [2]
    assert sample(logits, [late]).token == [0]


SOME_IDS = st.sets(st.integers(0, 69), min_size=1)


@given(
    st.none() | SOME_IDS,
    st.none() | SOME_IDS,
    SOME_IDS,
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
    st.dictionaries(st.integers(0, 69), st.floats(-100, 100, width=32), max_size=4),
)
def test_masks_allowed_ids_bias_and_min_tokens_together(
    masked: set[int] | None,
    allowed: set[int] | None,
    stops: set[int],
    early: bool,
    temperature: float,
    bias: dict[int, float],
) -> None:
    """Beside a row that nothing is asked of."""
    able = (masked or set(range(70))) & (allowed or set(range(70)))
    able -= stops if early else set()
    sequence = a_sequence(
        stops=sorted(stops),
        min_tokens=int(early),
        allowed_ids=None if allowed is None else tuple(sorted(allowed)),
        temperature=temperature,
        logit_bias=bias,
        grammar=None if masked is None else GrammarSpec(kind="json_object", text=""),
        seed=7,
    )
    logits = torch.linspace(3, -3, 70).repeat(2, 1)
    free = a_sequence(temperature=0.0)
    masks = None if masked is None else mask(70, sorted(masked), None)
    drawn = sample(logits, [sequence, free], masks)
    assert drawn.token[1] == 0
    if not able:
        assert drawn.token[0] == PAD_ID
        assert list(drawn.refused) == [0]
        error = drawn.refused[0]
        assert error.code == ("unsupported" if masked is None else "grammar_invalid")
        assert ("allowed token ids" in error.message) == (allowed is not None)
        assert ("min_tokens" in error.message) == early
        return
    assert not drawn.refused
    assert drawn.token[0] in able
    if temperature == 0:
        order = sorted(able, key=lambda id_: (-float(logits[0, id_]) - bias.get(id_, 0), id_))
        assert drawn.token[0] == order[0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_refused_and_harm_nobody(
    broken: float, temperature: float
) -> None:
    logits = torch.tensor([LOGITS] * 4)
    logits[1, 4] = logits[2, 4] = broken
    logits[3] = -math.inf
    changes: dict[str, Any] = {"seed": 3, "temperature": temperature, "logprobs": 1, "top_p": 0.9}
    sequences = [a_sequence(**changes) for _ in range(4)]
    # What is broken is not to be trusted, even where it may not be drawn.
    sequences[2].request.allowed_ids = (0, 1)
    with np.errstate(all="ignore"):
        drawn = sample(logits, sequences)
    assert sorted(drawn.refused) == [1, 2, 3]
    assert {error.code for error in drawn.refused.values()} == {"engine_failed"}
    assert drawn.token[1:] == [PAD_ID] * 3
    assert drawn.token[:1] == sample(logits[:1], sequences[:1]).token


@given(
    st.lists(st.integers(0, 19), max_size=40),
    st.lists(st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0]), min_size=20, max_size=20),
    st.sampled_from([0.5, 1.0, 1.3, 2.0]),
    st.sampled_from([-2.0, 0.0, 0.7]),
    st.sampled_from([-1.0, 0.0, 1.5]),
    st.integers(1, 7),
)
def test_penalties_over_a_history_are_those_of_the_definition(
    output: list[int],
    logits: list[float],
    repetition: float,
    frequency: float,
    presence: float,
    stride: int,
) -> None:
    """The history grows by a few tokens between the steps, as it does around a preemption."""
    sampler, raw = Sampler(1, 20, CPU), torch.tensor([logits])
    sequence = a_sequence(
        temperature=0.0, repetition=repetition, frequency=frequency, presence=presence
    )
    for end in range(0, len(output) + 1, stride):
        sequence.ids[3:] = type(sequence.ids)("I", output[:end])
        (token,) = sampler.sample(raw, [sequence]).token
        expected = penalised(logits, sequence)
        assert expected[token] == pytest.approx(max(expected), abs=1e-4)


def test_sampling_leaves_the_logits_alone() -> None:
    logits = torch.tensor([LOGITS] * 2)
    sample(logits, [a_sequence(temperature=0.5, top_k=3, logit_bias={1: 2.0}), a_sequence()])
    assert torch.equal(logits, torch.tensor([LOGITS] * 2))
