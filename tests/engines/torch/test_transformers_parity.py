"""Logits and greedy texts are those of the ``transformers`` library, whatever the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from antiphon.models.files import ModelFiles
from engines.torch import reference
from engines.torch.harness import engine_logits, loaded, running
from engines.torch.requests import a_request
from engines.torch.test_default_model import FRANCE
from engines.torch.tiny_models import Shape, write_gguf
from engines.torch.transformers_models import (
    SIZES,
    default_model_of,
    greedy_of,
    likeliest_along,
    logits_of,
    permuted,
    random_model,
    saved,
    weights_of,
)
from known_replies import FILES, FOLDER

TOLERANCE = 1e-3
IDS = [int(one) for one in np.random.default_rng(2).integers(0, 96, 61)]
CHUNKS = [[61], [1] * 61, [20, 1, 1, 16, 16, 1, 6]]
"""The whole prompt; token by token; chunks of a prompt among decodes."""
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}
WINDOW = 9
CONFIGS: dict[str, Any] = {
    "llama": lambda: LlamaConfig(**SIZES, tie_word_embeddings=True),
    "llama, biases, llama3 rope": lambda: LlamaConfig(
        **SIZES, attention_bias=True, mlp_bias=True, head_dim=32, rope_parameters=LLAMA3
    ),
    "llama, linear rope": lambda: LlamaConfig(**SIZES, rope_parameters=LINEAR),
    "mistral": lambda: MistralConfig(**SIZES, sliding_window=None),
    "mistral, wide heads, window": lambda: MistralConfig(
        **SIZES, head_dim=32, sliding_window=WINDOW
    ),
    "qwen2": lambda: Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2, window": lambda: Qwen2Config(
        **SIZES, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=0
    ),
    "qwen3": lambda: Qwen3Config(**SIZES, head_dim=32, tie_word_embeddings=True),
    "qwen3, biases, window": lambda: Qwen3Config(
        **SIZES,
        head_dim=24,
        attention_bias=True,
        use_sliding_window=True,
        sliding_window=WINDOW,
        max_window_layers=0,
    ),
}
GGUF = ["llama", "mistral", "mistral, wide heads, window", "qwen2", "qwen3"]


@pytest.fixture(scope="module", params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Any:
    return random_model(CONFIGS[request.param]())


@pytest.mark.parametrize("how", [{}, {"max_shard_size": "40KB"}], ids=["whole", "sharded"])
def test_folders(tmp_path: Path, model: Any, how: dict[str, Any]) -> None:
    files = saved(model, tmp_path / "m", **how)
    assert len(list(files.path.glob("*.safetensors"))) > 1 if how else True
    engine, expected = loaded(files), logits_of(model, IDS)
    for chunks in CHUNKS:
        assert_close(engine_logits(engine, IDS, chunks), expected)


async def test_greedy_texts_of_folders(tmp_path: Path, model: Any) -> None:
    files = saved(model, tmp_path / "m")
    await assert_greedy(files, model, IDS)


@pytest.mark.parametrize("name", GGUF)
async def test_gguf_files(tmp_path: Path, name: str) -> None:
    """Written as llama.cpp's converter does: only llama's rows change their order."""
    model = random_model(CONFIGS[name]())
    config = model.config
    shape = Shape.of(config)
    weights, architecture = weights_of(model), config.model_type
    fields: dict[str, Any] = {}
    if architecture in ("llama", "mistral"):
        weights = permuted(weights, shape.heads, shape.kv_heads)
        architecture = "llama"
    if window := getattr(config, "sliding_window", None):
        fields["llama.attention.sliding_window"] = window
    files, _ = write_gguf(
        tmp_path / "m.gguf", shape, weights, architecture=architecture, fields=fields
    )
    engine, expected = loaded(files), logits_of(model, IDS)
    for chunks in CHUNKS:
        assert_close(engine_logits(engine, IDS, chunks), expected)
    await assert_greedy(files, model, IDS)


@pytest.mark.parametrize("name", ["mistral, wide heads, window", "qwen3, biases, window", "llama"])
async def test_greedy_texts_in_company(tmp_path: Path, name: str) -> None:
    """Texts of unequal lengths in the same steps, some within the window and some beyond it."""
    model = random_model(CONFIGS[name]())
    prompts = {key: IDS[key : key + length] for key, length in enumerate((1, 5, 8, 9, 10, 31, 48))}
    settings: dict[str, Any] = {"weights": "float", "step_tokens": 24}
    async with running(saved(model, tmp_path / "m"), **settings) as (engine, watch):
        for key, prompt in prompts.items():
            engine.submit(a_request(key, prompt, max_tokens=40, temperature=0.0))
        for key in prompts:
            await watch.finished(key)
        texts = {key: list(watch[key].tokens) for key in prompts}
    assert texts == {key: greedy_of(model, prompt, 40) for key, prompt in prompts.items()}


def test_the_window_is_told_from_none(tmp_path: Path) -> None:
    """A text longer than the window has other logits without it, so the tests above see it."""
    windowed = random_model(CONFIGS["mistral, wide heads, window"]())
    expected = logits_of(windowed, IDS)
    windowed.config.sliding_window = None
    blind = logits_of(windowed, IDS)
    assert np.abs(blind[:WINDOW] - expected[:WINDOW]).max() < TOLERANCE
    assert np.abs(blind[WINDOW + 1 :] - expected[WINDOW + 1 :]).max() > 0.1


def test_tinychat() -> None:
    """Trained weights, as every answer of the tests comes from."""
    loader: Any = AutoModelForCausalLM
    model = loader.from_pretrained(FOLDER, dtype="float32").eval()
    ids = [int(one) for one in np.random.default_rng(5).integers(0, 768, 50)]
    engine, expected = loaded(FILES), logits_of(model, ids)
    for chunks in ([50], [1] * 50, [16, 1, 30, 3]):
        assert_close(engine_logits(engine, ids, chunks), expected)


async def test_the_default_model(default_model: ModelFiles) -> None:
    """Its file is read by the library's own code, from its metadata to the order of its rows."""
    model = default_model_of(default_model.path)
    expected = logits_of(model, FRANCE)
    engine = loaded(default_model, weights="float")
    for chunks in ([len(FRANCE)], [16, 16, len(FRANCE) - 34, 1, 1]):
        logits = engine_logits(engine, FRANCE, chunks)
        assert_close(logits, expected)
    await assert_greedy(default_model, model, FRANCE)


async def assert_greedy(files: ModelFiles, model: Any, ids: Any, count: int = 200) -> None:
    """The engine says what the library finds the likeliest, ``count`` tokens long."""
    async with running(files, weights="float") as (engine, watch):
        engine.submit(a_request(1, ids, max_tokens=count, temperature=0.0, ignore_eos=True))
        await watch.finished(1)
        said = list(watch[1].tokens)
    assert len(said) == count
    assert said == likeliest_along(model, ids, said)


def assert_close(actual: reference.Array, expected: reference.Array) -> None:
    assert actual.shape == expected.shape
    assert np.abs(expected).max() > 0.5, "the logits are not all alike"
    np.testing.assert_allclose(actual, expected, atol=TOLERANCE, rtol=0)
