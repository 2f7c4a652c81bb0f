"""A model that cannot be loaded is one line that names what is wrong."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import anyio
import gguf
import numpy as np
import pytest

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.options import EngineOptions
from antiphon.models.files import ModelFiles
from engines.frame_watch import HANG_GUARD_S
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_gguf, write_hf

SHAPE = Shape()
WEIGHTS = random_weights(SHAPE)
LOADER = "antiphon.engines.torch.load"


async def refused(files: ModelFiles, *named: str, **settings: Any) -> None:
    engine = TorchEngine(EngineOptions(files=files, **({"device": "cpu"} | settings)))
    with anyio.fail_after(HANG_GUARD_S), pytest.raises(EngineStartError) as caught:
        await engine.start()
    message = str(caught.value)
    assert "\n" not in message
    for name in named:
        assert name in message
    assert [frame async for frame in engine.frames()] == []
    await engine.stop(0)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architectures": ["GemmaForCausalLM"]}, ["architectures", "GemmaForCausalLM"]),
        ({"architectures": None}, ["architectures", "None"]),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, ["rope_type", "yarn"]),
        ({"rope_scaling": {"type": "dynamic"}}, ["type", "dynamic"]),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 2.0}}, ["low_freq_factor"]),
        ({"quantization_config": {"quant_method": "gptq"}}, ["quantization_config", "gptq"]),
        ({"sliding_window": 128}, ["sliding_window", "128"]),
        ({"hidden_act": "gelu"}, ["hidden_act", "gelu"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor", "0.5"]),
        ({"vocab_size": None}, ["vocab_size", "missing"]),
        ({"vocab_size": "many"}, ["vocab_size", "many"]),
        ({"rms_norm_eps": 0}, ["rms_norm_eps", "0"]),
        ({"eos_token_id": "</s>"}, ["eos_token_id", "</s>"]),
        ({"eos_token_id": [2, 96]}, ["96", "vocabulary"]),
        ({"num_key_value_heads": 3}, ["4 query heads", "3 key heads"]),
        ({"head_dim": 5}, ["5 dimensions"]),
        ({"vocab_size": 97}, ["model.embed_tokens.weight", "[96, 64]", "[97, 64]"]),
        ({"intermediate_size": 64}, ["mlp.gate_proj.weight", "[96, 64]", "[64, 64]"]),
        ({"num_hidden_layers": 3}, ["model.layers.2", "missing"]),
        ({"num_hidden_layers": 1}, ["model.layers.1", "not part"]),
        ({"tie_word_embeddings": False}, ["lm_head.weight", "missing"]),
    ],
    ids=str,
)
async def test_config_json(tmp_path: Path, changes: dict[str, Any], named: list[str]) -> None:
    await refused(write_hf(tmp_path / "m", hf_config(SHAPE, **changes), WEIGHTS), *named)


DAMAGES: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "no config": (lambda path: (path / "config.json").unlink(), ["config.json", "No such file"]),
    "config is no JSON": (lambda path: (path / "config.json").write_text("{"), ["config.json"]),
    "config is a list": (lambda path: (path / "config.json").write_text("[]"), ["object"]),
    "no weights": (lambda path: (path / "model.safetensors").unlink(), ["model.safetensors"]),
    "pickle": (
        lambda path: (path / "model.safetensors").rename(path / "pytorch_model.bin"),
        ["pickles only"],
    ),
    "an old pickle": (
        lambda path: (path / "model.safetensors").rename(path / "weights.PKL"),
        ["pickles only"],
    ),
    "garbage": (
        lambda path: (path / "model.safetensors").write_bytes(b"\xff" * 900),
        ["model.safetensors", "damaged"],
    ),
    "empty": (lambda path: (path / "model.safetensors").write_bytes(b""), ["damaged"]),
    "truncated": (
        lambda path: (path / "model.safetensors").write_bytes(
            (path / "model.safetensors").read_bytes()[:-1000]
        ),
        ["damaged"],
    ),
    "generation config": (
        lambda path: (path / "generation_config.json").write_text('{"eos_token_id": -1}'),
        ["generation_config.json", "-1"],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_folder(tmp_path: Path, damage: str) -> None:
    files = write_hf(tmp_path / "m", hf_config(SHAPE), WEIGHTS)
    spoil, named = DAMAGES[damage]
    spoil(files.path)
    await refused(files, *named)


async def test_missing_shard(tmp_path: Path) -> None:
    files = write_hf(tmp_path / "m", hf_config(SHAPE), WEIGHTS, shards=3)
    (files.path / "model-00002-of-00003.safetensors").unlink()
    await refused(files, "model-00002-of-00003.safetensors")


async def test_index_without_a_map(tmp_path: Path) -> None:
    files = write_hf(tmp_path / "m", hf_config(SHAPE), WEIGHTS, shards=2)
    (files.path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {}}))
    await refused(files, "weight_map")


async def test_integer_tensors(tmp_path: Path) -> None:
    packed: Any = {name: values.astype(np.int8) for name, values in WEIGHTS.items()}
    await refused(write_hf(tmp_path / "m", hf_config(SHAPE), packed), "I8")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architecture": "gemma3"}, ["general.architecture", "gemma3"]),
        ({"fields": {"llama.rope.scaling.type": "yarn"}}, ["llama.rope.scaling.type", "yarn"]),
        ({"fields": {"llama.expert_count": 8}}, ["llama.expert_count", "8"]),
        ({"quantised": {"down_proj.weight": gguf.GGMLQuantizationType.TQ1_0}}, ["TQ1_0"]),
        ({"extra": {"blk.0.attn_q_norm.weight": np.ones(16, np.float32)}}, ["self_attn.q_norm"]),
    ],
    ids=str,
)
async def test_gguf_fields(tmp_path: Path, changes: dict[str, Any], named: list[str]) -> None:
    shape = Shape(ffn=256)  # a block of TQ1_0 is 256 weights
    files, _ = write_gguf(tmp_path / "m.gguf", shape, random_weights(shape), **changes)
    await refused(files, *named)


async def test_gguf_without_embedding(tmp_path: Path) -> None:
    rest = {name: one for name, one in WEIGHTS.items() if "embed" not in name}
    files, _ = write_gguf(tmp_path / "m.gguf", SHAPE, rest)
    await refused(files, "token_embd.weight", "missing")


async def test_gguf_with_the_wrong_shapes(tmp_path: Path) -> None:
    files, _ = write_gguf(tmp_path / "m.gguf", Shape(head_dim=8), WEIGHTS)
    await refused(files, "q_proj.weight", "[64, 64]", "[32, 64]")


@pytest.mark.parametrize("kept", [0, 4, 20, 200, 900, 2000, -1000, -1])
async def test_truncated_gguf(tmp_path: Path, kept: int) -> None:
    files, _ = write_gguf(tmp_path / "m.gguf", SHAPE, WEIGHTS)
    files.path.write_bytes(files.path.read_bytes()[:kept])
    await refused(files, "m.gguf", "damaged")


async def test_garbage_gguf(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for content in (b"\0" * 4000, b"GGUF" + b"\xff" * 4000, b"GGUF\x03\0\0\0" + b"\x20" * 4000):
        path.write_bytes(content)
        await refused(ModelFiles("m", "gguf", path), "m.gguf")


async def test_missing_file(tmp_path: Path) -> None:
    await refused(ModelFiles("m", "gguf", tmp_path / "none.gguf"), "none.gguf", "No such file")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"device": "tpu"}, ["device", "tpu"]),
        ({"device": "cuda:99"}, ["cuda:99"]),
        ({"device": "cuda:x"}, ["cuda:x"]),
        ({"dtype": "int3"}, ["dtype", "int3"]),
        ({"kv_bytes": 100}, ["100 bytes", "one page"]),
        ({"kv_bytes": 2**62, "max_running": 2**50}, ["KV cache"]),
    ],
    ids=str,
)
async def test_settings(tiny: ModelFiles, settings: dict[str, Any], named: list[str]) -> None:
    await refused(tiny, *named, **settings)


@pytest.mark.parametrize("failure", [ImportError("libcudart.so: no such\nfile"), OSError("gone")])
async def test_a_torch_that_cannot_be_imported(
    tiny: ModelFiles, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
            if fullname == LOADER:
                raise failure

    monkeypatch.delitem(sys.modules, LOADER, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    await refused(tiny, "torch cannot be imported", str(failure).split()[0])


@pytest.mark.parametrize("failure", [SystemExit(3), MemoryError(), RuntimeError("two\nlines")])
async def test_whatever_ends_the_thread(
    tiny: ModelFiles, failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("antiphon.engines.torch.load.load", fail)
    await refused(tiny, str(tiny.path), "cannot be loaded", type(failure).__name__)


async def test_a_thread_that_cannot_be_started(
    tiny: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    await refused(tiny, "can't start new thread")
