"""The decoder's logits against the float64 reference, for every kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.torch import reference
from engines.torch.harness import engine_logits, loaded
from engines.torch.tiny_models import Q, Shape, hf_config, random_weights, write_gguf, write_hf

IDS = [int(one) for one in np.random.default_rng(1).integers(0, 96, 41)]
CHUNKS = [[41], [1] * 41, [16, 16, 9], [17, 1, 1, 20, 2]]
WIDE_HEADS = Shape(hidden=64, heads=3, kv_heads=1, head_dim=32)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_hf_folder(tmp_path: Path, chunks: list[int]) -> None:
    shape, weights = Shape(), random_weights(Shape())
    engine = loaded(write_hf(tmp_path / "m", hf_config(shape), weights))
    expected = reference.logits(weights, shape, IDS, reference.half_split)
    assert_close(engine_logits(engine, IDS, chunks), expected)


@pytest.mark.parametrize("shards", [2, 5])
def test_sharded_untied_biased_wide_heads(tmp_path: Path, shards: int) -> None:
    shape = WIDE_HEADS
    weights = random_weights(shape, tied=False, attention_bias=True, mlp_bias=True)
    config = hf_config(shape, tie_word_embeddings=False, attention_bias=True, mlp_bias=True)
    engine = loaded(write_hf(tmp_path / "m", config, weights, shards=shards))
    expected = reference.logits(weights, shape, IDS, reference.half_split)
    assert_close(engine_logits(engine, IDS, [20, 1, 20]), expected)


def test_mistral_without_a_window(tmp_path: Path) -> None:
    shape, weights = Shape(), random_weights(Shape())
    config = hf_config(shape, architectures=["MistralForCausalLM"], head_dim=None)
    engine = loaded(write_hf(tmp_path / "m", config, weights))
    expected = reference.logits(weights, shape, IDS, reference.half_split)
    assert_close(engine_logits(engine, IDS, [41]), expected)


@pytest.mark.parametrize("bias", [False, True])
def test_gguf_rows_are_for_adjacent_pairs(tmp_path: Path, bias: bool) -> None:
    """The reference turns adjacent pairs on the stored rows and permutes nothing."""
    shape = WIDE_HEADS
    weights = random_weights(shape, tied=False, attention_bias=bias)
    files, held = write_gguf(tmp_path / "m.gguf", shape, weights)
    logits = engine_logits(loaded(files), IDS, [30, 1, 10])
    assert_close(logits, reference.logits(held, shape, IDS, reference.adjacent_pair))
    wrong = reference.logits(held, shape, IDS, reference.half_split)
    assert np.abs(logits - wrong).max() > 0.1, "the test tells the two forms apart"


@pytest.mark.parametrize(
    "kind", [Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0], ids=lambda kind: kind.name
)
def test_gguf_types(tmp_path: Path, kind: Any) -> None:
    shape, weights = Shape(), random_weights(Shape())
    quantised = {"proj.weight": kind, "embed_tokens.weight": Q.Q8_0}
    files, held = write_gguf(tmp_path / "m.gguf", shape, weights, quantised=quantised)
    expected = reference.logits(held, shape, IDS, reference.adjacent_pair)
    assert_close(engine_logits(loaded(files), IDS, [41]), expected)


def test_llama3_scaling_in_both_kinds_of_file(tmp_path: Path) -> None:
    shape, weights = Shape(), random_weights(Shape())
    rule = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    frequencies = llama3_frequencies(shape, rule)
    bands = set(frequencies / reference.plain_frequencies(shape))
    assert {0.125, 1.0} < bands, "all three bands occur"
    old = write_hf(tmp_path / "old", hf_config(shape, rope_scaling=rule), weights)
    new_rule = rule | {"rope_theta": shape.theta}
    new = write_hf(
        tmp_path / "new", hf_config(shape, rope_theta=None, rope_parameters=new_rule), weights
    )
    expected = reference.logits(weights, shape, IDS, reference.half_split, frequencies)
    for files in (old, new):
        assert_close(engine_logits(loaded(files), IDS, [41]), expected)

    factors = (reference.plain_frequencies(shape) / frequencies).astype(np.float32)
    files, held = write_gguf(
        tmp_path / "m.gguf", shape, weights, extra={"rope_freqs.weight": factors}
    )
    expected = reference.logits(held, shape, IDS, reference.adjacent_pair, frequencies)
    assert_close(engine_logits(loaded(files), IDS, [41]), expected)


def test_linear_scaling_in_both_kinds_of_file(tmp_path: Path) -> None:
    shape, weights = Shape(), random_weights(Shape())
    frequencies = reference.plain_frequencies(shape) / 4
    config = hf_config(shape, rope_scaling={"type": "linear", "factor": 4.0})
    expected = reference.logits(weights, shape, IDS, reference.half_split, frequencies)
    assert_close(
        engine_logits(loaded(write_hf(tmp_path / "m", config, weights)), IDS, [41]), expected
    )
    fields = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    files, held = write_gguf(tmp_path / "m.gguf", shape, weights, fields=fields)
    expected = reference.logits(held, shape, IDS, reference.adjacent_pair, frequencies)
    assert_close(engine_logits(loaded(files), IDS, [41]), expected)


@pytest.mark.parametrize(("dtype", "tolerance"), [("bfloat16", 0.05), ("float16", 0.01)])
def test_half_precision_is_near(tmp_path: Path, dtype: str, tolerance: float) -> None:
    shape, weights = Shape(), random_weights(Shape())
    engine = loaded(write_hf(tmp_path / "m", hf_config(shape), weights), dtype=dtype)
    assert engine.info.dtype == dtype
    expected = reference.logits(weights, shape, IDS, reference.half_split)
    error = np.abs(engine_logits(engine, IDS, [20, 1, 20]) - expected).max()
    assert error < tolerance * np.abs(expected).max()


def llama3_frequencies(shape: Shape, rule: dict[str, Any]) -> reference.Array:
    """Band by band, from the model card's description."""
    scaled = []
    for frequency in reference.plain_frequencies(shape):
        wavelength = 2 * np.pi / frequency
        ratio = rule["original_max_position_embeddings"] / wavelength
        low, high = rule["low_freq_factor"], rule["high_freq_factor"]
        if ratio < low:
            scaled.append(frequency / rule["factor"])
        elif ratio > high:
            scaled.append(frequency)
        else:
            smooth = (ratio - low) / (high - low)
            scaled.append((1 - smooth) * frequency / rule["factor"] + smooth * frequency)
    return np.array(scaled)


def assert_close(actual: reference.Array, expected: reference.Array) -> None:
    assert actual.shape == expected.shape
    assert np.abs(expected).max() > 0.5, "the logits are not all alike"
    np.testing.assert_allclose(actual, expected, atol=2e-4, rtol=0)
