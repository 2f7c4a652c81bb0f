"""Converted weights: kept once, found again as they were, and never in the way."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from antiphon.engines.torch.weights import converted, stored
from antiphon.engines.torch.weights.assemble import Form
from antiphon.engines.torch.weights.assemble import assemble as real_assemble
from antiphon.engines.torch.weights.stored import StoredTensors
from antiphon.models.files import ModelFiles
from engines.torch.harness import engine_logits, loaded
from engines.torch.tiny_models import Q, Shape, hf_config, random_weights, write_gguf, write_hf

SHAPE = Shape(hidden=64, ffn=96)
CPU = torch.device("cpu")
IDS = [int(one) for one in np.random.default_rng(3).integers(0, 96, 20)]


@pytest.fixture(autouse=True)
def every_file_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converted, "SMALLEST", 0)


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return a_model(tmp_path / "m.gguf")


def a_model(path: Path, **settings: Any) -> ModelFiles:
    kinds = {"proj.weight": Q.Q4_1, "embed_tokens.weight": Q.Q8_0}
    return write_gguf(path, SHAPE, random_weights(SHAPE, **settings), quantised=kinds)[0]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The forms in which weights were assembled, one for each time."""
    forms: list[str] = []

    def watched(source: Any, dtype: torch.dtype, device: torch.device, form: Form) -> Any:
        forms.append(form)
        return real_assemble(source, dtype, device, form)

    monkeypatch.setattr(converted, "assemble", watched)
    return forms


@pytest.mark.parametrize("form", ["float", "auto", "int8", "int4"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_second_start_is_the_first(
    tmp_path: Path, made: list[str], form: str, dtype: str, tied: bool
) -> None:
    files, cache = a_model(tmp_path / "m.gguf", tied=tied, attention_bias=True), tmp_path / "c"
    first, second = (
        engine_logits(loaded(files, dtype=dtype, weights=form, cache=cache), IDS, [12, 1, 7])
        for _ in range(2)
    )
    assert len(made) == 1
    np.testing.assert_array_equal(first, second)


def test_whatever_decides_the_tensors_has_its_own(
    tmp_path: Path, files: ModelFiles, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "c"
    monkeypatch.setattr(stored, "KEPT", 99)

    def start(model: ModelFiles = files, **settings: Any) -> int:
        loaded(model, **({"cache": cache} | settings))
        return len(made)

    assert start() == 1
    assert start(weights="auto") == 1, "auto is float in float32"
    assert start(dtype="bfloat16") == 2
    assert start(dtype="bfloat16", weights="int8") == 3
    copy = ModelFiles("n", "gguf", tmp_path / "n.gguf")
    copy.path.write_bytes(files.path.read_bytes())
    copy.path.rename(tmp_path / "elsewhere.gguf")
    (tmp_path / "elsewhere.gguf").rename(tmp_path / "m.gguf")
    assert start() == 3, "the same bytes at another time"
    content = bytearray(files.path.read_bytes())
    content[-1] ^= 1
    files.path.write_bytes(content)
    assert start() == 4, "another byte"
    monkeypatch.setattr(converted, "packing", lambda: "another machine")
    assert start() == 5
    monkeypatch.setattr(converted, "code_digest", lambda: "newer code")
    assert start() == 6
    assert len(list(cache.iterdir())) == 6


def test_a_folder_and_a_small_file_are_not_kept(
    tmp_path: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "c"
    folder = write_hf(tmp_path / "hf", hf_config(SHAPE), random_weights(SHAPE))
    loaded(folder, cache=cache)
    monkeypatch.setattr(converted, "SMALLEST", files.path.stat().st_size + 1)
    loaded(files, cache=cache)
    assert not cache.exists()


def test_the_default_place_is_the_cache(
    tmp_path: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "user"))
    loaded(files)
    (kept,) = (tmp_path / "user" / "converted").iterdir()
    assert kept.name.startswith("m-")
    assert load_file(kept)["embedding"].shape == (SHAPE.vocab, SHAPE.hidden)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in its header": lambda content: content[:100],
    "cut": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "a bit of a weight": lambda content: content[:-1] + bytes([content[-1] ^ 4]),
    "a shape": lambda content: content.replace(b"[96,64]", b"[64,96]", 1),
    "a name": lambda content: content.replace(b"layers.1.down", b"layers.7.down", 1),
    "no checksum": lambda content: content.replace(b'"crc32"', b'"crc23"', 1),
    "no tensors": lambda content: b"\x02\0\0\0\0\0\0\0{}",
    "noise": lambda content: b"\xff" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_is_made_anew(
    tmp_path: Path,
    files: ModelFiles,
    made: list[str],
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = tmp_path / "c"
    expected = engine_logits(loaded(files, cache=cache), IDS, [20])
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    spoilt = DAMAGES[damage](whole)
    assert spoilt != whole
    kept.write_bytes(spoilt)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(
            engine_logits(loaded(files, cache=cache), IDS, [20]), expected
        )
    assert f"{kept} is damaged" in caplog.text
    assert len(made) == 2
    assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_time_alone(
    tmp_path: Path, files: ModelFiles, made: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    for cache in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            loaded(files, cache=cache)
        assert "cannot be kept" in caplog.text
        assert str(cache) in caplog.text
    assert len(made) == 3


def test_a_full_disk(
    tmp_path: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    cache = tmp_path / "c"
    monkeypatch.setattr(stored, "SPARE_BYTES", 1 << 62)
    with caplog.at_level(logging.WARNING):
        loaded(files, cache=cache)
    assert "MiB are free" in caplog.text
    assert list(cache.iterdir()) == []


def tensors(size: int) -> dict[str, torch.Tensor]:
    return {"t": torch.arange(size, dtype=torch.uint8), "scalar": torch.tensor(1.5)}


def aged(folder: Path, name: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / name, (then, then))


def test_sets_unused_for_longest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = StoredTensors(tmp_path)
    for number in range(4):
        kept.write(f"set{number}", tensors(10))
        aged(tmp_path, f"set{number}.safetensors", 1000 - number)
    assert kept.read("set0") is not None, "and so used just now"
    kept.write("set4", tensors(10))
    names = {path.stem for path in tmp_path.iterdir()}
    assert names == {"set0", "set2", "set3", "set4"}
    monkeypatch.setattr(stored, "KEPT_BYTES", 1)
    kept.write("set5", tensors(10))
    assert {path.stem for path in tmp_path.iterdir()} == {"set5"}, "one is kept whatever its size"


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    for name in ("old.part", "new.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tensors").write_bytes(b"half")
    aged(tmp_path, "old.part", stored.ABANDONED_S + 10)
    StoredTensors(tmp_path).write("set", tensors(10))
    assert {path.name for path in tmp_path.iterdir()} == {"new.part", "set.safetensors"}


def test_tensors_are_the_readers_own(tmp_path: Path) -> None:
    """A copy that is cut while it is in use takes nobody down."""
    kept = StoredTensors(tmp_path)
    kept.write("set", tensors(200))
    found = kept.read("set")
    assert found is not None
    with (tmp_path / "set.safetensors").open("r+b") as file:
        file.truncate(0)
    torch.testing.assert_close(found, tensors(200))
