"""A tokenizer and a model that do not go together do not start."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from antiphon.config import Config
from antiphon.errors import StartupError
from antiphon.loading import load
from antiphon.models.files import ModelFiles
from engines.frame_watch import HANG_GUARD_S
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf
from known_replies import FOLDER


def model(path: Path, vocab: int) -> ModelFiles:
    """Random weights with the tokenizer of the fixture model, which has 768 tokens."""
    shape = Shape(vocab=vocab, context=256)
    files = write_hf(path, hf_config(shape), random_weights(shape))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(FOLDER / name, path)
    return files


def engine_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "torch-engine"}


async def test_more_tokens_than_logits(tmp_path: Path) -> None:
    path = model(tmp_path / "m", 767).path
    before = engine_threads()
    with pytest.raises(StartupError, match=r"/m: its tokenizer has ids up to 767, .* 767 tokens"):
        await load(Config(model=str(path), device="cpu", dtype="float32"))
    for thread in engine_threads() - before:
        thread.join(HANG_GUARD_S)
        assert not thread.is_alive(), "the engine that was started is stopped"


@pytest.mark.parametrize("vocab", [768, 800])
async def test_as_many_tokens_or_fewer(tmp_path: Path, vocab: int) -> None:
    """Models are often padded to a round number."""
    path = model(tmp_path / "m", vocab).path
    engine, models, _ = await load(Config(model=str(path), device="cpu", dtype="float32"))
    assert models[0].info.vocab_size == vocab
    await engine.stop(0)
