"""Weights that are not what their folder says are one clear line before a tensor is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.weights.hf_directory import HfDirectory
from antiphon.errors import StartupError
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf

SHAPE = Shape(layers=1)
WEIGHTS = random_weights(SHAPE)
NORM, DOWN = "model.norm.weight", "model.layers.0.mlp.down_proj.weight"
INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"


def folder(path: Path, shards: int = 1, **config: Any) -> Path:
    return write_hf(path / "m", hf_config(SHAPE, **config), WEIGHTS, shards=shards).path


def refused(path: Path, *named: str) -> None:
    with pytest.raises((EngineStartError, StartupError)) as caught:
        HfDirectory(path)
    for name in named:
        assert name in str(caught.value)


def changed(path: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> Path:
    tensors = load_file(path / WHOLE)
    change(tensors)
    save_file(tensors, path / WHOLE)
    return path


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(torch.int64, "I64"), (torch.float8_e4m3fn, "F8_E4M3"), (torch.bool, "BOOL")],
    ids=str,
)
def test_types_that_are_no_weights(tmp_path: Path, dtype: torch.dtype, name: str) -> None:
    path = folder(tmp_path)
    changed(path, lambda tensors: tensors.update({DOWN: tensors[DOWN].to(dtype)}))
    refused(path, DOWN, name, "F32")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_types_that_are(tmp_path: Path, dtype: torch.dtype) -> None:
    path = folder(tmp_path)
    changed(path, lambda tensors: tensors.update({NORM: tensors[NORM].to(dtype)}))
    assert HfDirectory(path).tensor(NORM).dtype is dtype


def test_tensors_too_few_too_many_and_of_other_shapes(tmp_path: Path) -> None:
    path = folder(tmp_path)
    whole = (path / WHOLE).read_bytes()
    for change, named in (
        (lambda tensors: tensors.pop(NORM), [NORM, "missing"]),
        (lambda tensors: tensors.update(extra=torch.ones(2)), ["extra", "not part"]),
        (lambda tensors: tensors.update({NORM: torch.ones(63)}), [NORM, "[63]", "[64]"]),
        (lambda tensors: tensors.update({NORM: torch.ones(1, 64)}), [NORM, "[1, 64]", "[64]"]),
        (lambda tensors: tensors.update({NORM: torch.tensor(1.0)}), [NORM, "[]", "[64]"]),
    ):
        (path / WHOLE).write_bytes(whole)
        refused(changed(path, change), *named)


def test_buffers_of_old_files_and_a_copied_head_are_no_surplus(tmp_path: Path) -> None:
    path = folder(tmp_path)
    buffer = "model.layers.0.self_attn.rotary_emb.inv_freq"
    changed(path, lambda tensors: tensors.update({buffer: torch.ones(8)}))
    changed(path, lambda tensors: tensors.update({"lm_head.weight": torch.ones(96, 64)}))
    assert buffer not in HfDirectory(path).names()


@pytest.mark.parametrize("key", ["attention_bias", "mlp_bias"])
def test_a_bias_that_only_one_of_both_has(tmp_path: Path, key: str) -> None:
    name = {"attention_bias": "q_proj", "mlp_bias": "gate_proj"}[key]
    refused(folder(tmp_path, **{key: True}), f"{name}.bias", "missing")
    place = "self_attn.o_proj" if key == "attention_bias" else "mlp.down_proj"
    bias = f"model.layers.0.{place}.bias"
    path = folder(tmp_path)
    refused(changed(path, lambda tensors: tensors.update({bias: torch.ones(64)})), bias, "not part")


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ({"vocab_size": 2**40}, ["model.embed_tokens.weight", str(2**40)]),
        ({"num_hidden_layers": 2**40}, ["model.layers.1.", "missing"]),
        ({"hidden_size": 2**62}, ["model.embed_tokens.weight"]),
        ({"intermediate_size": 2**70}, ["gate_proj.weight"]),
        ({"head_dim": 2**50}, ["q_proj.weight"]),
        ({"num_attention_heads": 2**40, "num_key_value_heads": 2**40}, ["q_proj.weight"]),
    ],
    ids=str,
)
def test_absurd_sizes_cost_nothing(tmp_path: Path, sizes: dict[str, int], named: list[str]) -> None:
    refused(folder(tmp_path, **sizes), *named)


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    path = folder(tmp_path)
    whole = (path / WHOLE).read_bytes()
    (header,) = struct.unpack("<Q", whole[:8])
    for length in [0, 1, 7, 8, 9, header // 2, header + 7, header + 8, len(whole) - 1]:
        (path / WHOLE).write_bytes(whole[:length])
        refused(path, WHOLE, "damaged")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 100_000_001])
def test_a_header_of_absurd_length(tmp_path: Path, length: int) -> None:
    path = folder(tmp_path)
    whole = (path / WHOLE).read_bytes()
    (path / WHOLE).write_bytes(struct.pack("<Q", length) + whole[8:])
    refused(path, WHOLE, "damaged")


@given(data=st.data())
def test_a_damaged_header_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never another error; and what is read has the tensors of the model."""
    path = folder(tmp_path_factory.mktemp("noise"))
    content = bytearray((path / WHOLE).read_bytes())
    (header,) = struct.unpack("<Q", content[:8])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, header + 7))] = data.draw(st.integers(0, 255))
    (path / WHOLE).write_bytes(content)
    try:
        source = HfDirectory(path)
        shapes = {name: source.tensor(name).shape for name in source.names()}
    except (EngineStartError, StartupError):
        return
    assert shapes == {name: values.shape for name, values in WEIGHTS.items()}


def rewritten(path: Path, change: Callable[[dict[str, str]], Any]) -> Path:
    index = json.loads((path / INDEX).read_text())
    change(index["weight_map"])
    (path / INDEX).write_text(json.dumps(index))
    return path


def test_an_index_that_says_something_else(tmp_path: Path) -> None:
    path = folder(tmp_path, shards=2)
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    before = (path / INDEX).read_text()
    holder = json.loads(before)["weight_map"][NORM]
    other = second if holder == first else first
    for change, named in (
        (lambda index: index.update({NORM: other}), [NORM, holder, other]),
        (lambda index: index.update(extra=first), ["extra", first, "in no shard"]),
        (lambda index: index.pop(NORM), [NORM, holder, "does not name"]),
        (lambda index: index.update({NORM: "gone.safetensors"}), ["gone.safetensors"]),
        (lambda index: index.update({NORM: 3}), ["weight_map", NORM, "3"]),
        (lambda index: index.update({NORM: f"../m/{holder}"}), ["weight_map", "../m/"]),
        (lambda index: index.update({NORM: str(path / holder)}), ["weight_map", str(path)]),
        (lambda index: index.update({NORM: ""}), ["weight_map", "''"]),
        (lambda index: index.update({NORM: ".."}), ["weight_map", "'..'"]),
    ):
        (path / INDEX).write_text(before)
        refused(rewritten(path, change), *named)
    for content in ("{", "[]", '{"weight_map": []}', "[" * 100_000, "\0"):
        (path / INDEX).write_text(content)
        refused(path, INDEX)


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    path = folder(tmp_path, shards=2)
    shards = sorted(path.glob("*.safetensors"))
    tensors = load_file(shards[1])
    save_file(tensors | {NORM: torch.from_numpy(WEIGHTS[NORM])}, shards[1])
    save_file(load_file(shards[0]) | {NORM: torch.from_numpy(WEIGHTS[NORM])}, shards[0])
    refused(path, NORM, "both", shards[0].name, shards[1].name)


def test_a_shard_that_is_cut(tmp_path: Path) -> None:
    path = folder(tmp_path, shards=2)
    shard = max(path.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-4])
    refused(path, shard.name, "damaged")


def test_sharded_is_whole(tmp_path: Path) -> None:
    """The counterpart of all of the above."""
    source = HfDirectory(folder(tmp_path, shards=3))
    assert source.names() == set(WEIGHTS)
    for name, values in WEIGHTS.items():
        np.testing.assert_array_equal(source.tensor(name), values)
