"""The sampler at the ends of float32 and of every setting: finite logits always give a token."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from antiphon.engines.torch.sampling.philox import LARGEST_NOISE
from antiphon.engines.torch.sampling.sampler import Sampler
from antiphon.engines.torch.sequence import Sequence
from engines.torch.requests import a_request

LARGEST = float(np.finfo(np.float32).max)
VOCAB = 70
REACH = LARGEST_NOISE + 2.9
"""Noise lies between minus 2.9 and the largest: what is further below the likeliest never wins."""

ANY = st.floats(-LARGEST, LARGEST, width=32)
USUAL = st.floats(-40, 40, width=32)
ENDS = st.sampled_from([LARGEST, -LARGEST, LARGEST / 2, -LARGEST / 2, 0.0, 1e-45, 1e30, 3e35])
ROWS = (
    st.lists(ANY, min_size=VOCAB, max_size=VOCAB)
    | st.lists(USUAL, min_size=VOCAB, max_size=VOCAB)
    | st.lists(ENDS, min_size=VOCAB, max_size=VOCAB)
)
SETTINGS = st.fixed_dictionaries(
    {
        "temperature": st.just(0.0) | st.floats(1e-5, 2) | st.floats(1e-5, 1e308),
        "presence": st.floats(-2, 2),
        "frequency": st.floats(-2, 2),
        "repetition": st.floats(math.ulp(0.0), 2) | st.floats(0.01, 2) | st.just(1.0),
        "logit_bias": st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-100, 100), max_size=4),
        "allowed_ids": st.none()
        | st.sets(st.integers(0, VOCAB - 1), min_size=1).map(lambda ids: tuple(sorted(ids))),
        "min_p": st.just(0.0) | st.floats(0, 1),
        "top_k": st.integers(0, VOCAB + 1),
        "top_p": st.just(1.0) | st.floats(1e-300, 1),
        "logprobs": st.none() | st.integers(0, 20),
        "seed": st.integers(0, 2**64 - 1),
    }
)


def changed(logits: list[float], sequence: Sequence) -> NDArray[np.float64]:
    """The logits that are drawn from, before their temperature, in float64: no end is near."""
    request, values = sequence.request, np.array(logits, dtype=np.float64)
    if request.allowed_ids is not None:
        values[np.setdiff1d(np.arange(VOCAB), request.allowed_ids)] = -math.inf
    for token, bias in request.logit_bias.items():
        values[token] += bias
    for token in set(sequence.ids):
        factor = request.repetition
        with np.errstate(over="ignore"):  # divided by next to nothing it is at its end, too
            values[token] = values[token] / factor if values[token] > 0 else values[token] * factor
    for token, count in Counter(sequence.output).items():
        values[token] -= request.frequency * count + request.presence
    return np.where(values > -math.inf, np.clip(values, -LARGEST, LARGEST), values)


def steps(logits: list[float], output: list[int], settings: dict[str, Any]) -> None:
    """One draw, beside a usual row before and after it."""
    sampler = Sampler(3, VOCAB, torch.device("cpu"))
    usual = [0.1 * token for token in range(VOCAB)]
    sequences = [
        Sequence.of(a_request(key, [3, 3, 5], **options), 1_000, frozenset())
        for key, options in enumerate(({"temperature": 0.5}, settings, {"temperature": 0.0}))
    ]
    sequences[1].ids.extend(output)
    for slot, sequence in enumerate(sequences):
        sequence.slot = slot
    drawn = sampler.sample(torch.tensor([usual, logits, usual]), sequences)
    alone = Sampler(3, VOCAB, torch.device("cpu")).sample(torch.tensor([usual]), sequences[:1])
    assert not drawn.refused
    assert (drawn.token[0], drawn.token[2]) == (alone.token[0], VOCAB - 1)
    values = changed(logits, sequences[1])
    token, best = drawn.token[1], values.max()
    assert values[token] > -math.inf
    rounding = max(abs(best), abs(values[token]), 200) * 2**-20
    heat = REACH * settings["temperature"] * (1 + 1e-6)
    assert best - values[token] <= heat + rounding
    if settings["logprobs"] is not None:
        assert drawn.logprob is not None
        told = [drawn.logprob[1], *drawn.top_lp[drawn.top_n :][: settings["logprobs"]]]
        json.dumps(told, allow_nan=False)
        assert max(told) <= 1e-5


EXTREME = {
    "temperature": 1e-5, "presence": -2.0, "frequency": -2.0, "repetition": 0.01,
    "logit_bias": {3: 100.0, 4: -100.0}, "allowed_ids": None, "min_p": 0.0, "top_k": 0,
    "top_p": 1.0, "logprobs": 20, "seed": 1,
}  # fmt: skip


@example([LARGEST] * VOCAB, [3, 3, 4], EXTREME)
@example([-LARGEST] * VOCAB, [3, 3, 4], EXTREME)
@example([-LARGEST, LARGEST] * (VOCAB // 2), [3], {**EXTREME, "top_p": 0.5, "min_p": 0.1})
@example([1e34] * VOCAB, [3], {**EXTREME, "repetition": 2.0, "top_k": 5})
@example(([1e-45, -1.0, 0.0] * VOCAB)[:VOCAB], [3, 4], {**EXTREME, "repetition": math.ulp(0.0)})
@example([-LARGEST] * VOCAB, [], {**EXTREME, "temperature": 1.0})
@example([LARGEST] + [-LARGEST] * (VOCAB - 1), [], {**EXTREME, "allowed_ids": (5, 6)})
@example([LARGEST] + [-LARGEST] * (VOCAB - 1), [], EXTREME)
@example([0.0] * VOCAB, [], {**EXTREME, "temperature": 1e308, "allowed_ids": (7,)})
@given(ROWS, st.lists(st.integers(0, VOCAB - 1), max_size=20), SETTINGS)
def test_finite_logits_give_a_token_that_can_win(
    logits: list[float], output: list[int], settings: dict[str, Any]
) -> None:
    steps(logits, output, settings)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_no_number_is_refused_still(temperature: float) -> None:
    for bad in (math.inf, math.nan):
        request = a_request(1, [3], temperature=temperature, repetition=1.5)
        sequence = Sequence.of(request, 1_000, frozenset())
        sequence.slot = 0
        raw = torch.tensor([[0.0, bad, 1.0, 2.0]])
        drawn = Sampler(1, 4, torch.device("cpu")).sample(raw, [sequence])
        assert drawn.refused[0].code == "engine_failed"
