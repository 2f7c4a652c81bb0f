"""A GGUF file whose header and tensors do not go together is one clear line."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.weights.gguf_file import GgufFile
from antiphon.errors import StartupError
from antiphon.models.gguf_metadata import read_header
from engines.torch.tiny_models import Q, Shape, Weights, random_weights, write_gguf

SHAPE = Shape(layers=1)
WEIGHTS = random_weights(SHAPE)
DOWN, NORM = "blk.0.ffn_down.weight", "output_norm.weight"


def written(path: Path, weights: Weights = WEIGHTS, **changes: Any) -> Path:
    return write_gguf(path / "m.gguf", SHAPE, weights, **changes)[0].path


def refused(path: Path, *named: str) -> None:
    with pytest.raises((EngineStartError, StartupError)) as caught:
        GgufFile(path)
    for name in named:
        assert name in str(caught.value)


def patched(path: Path, name: str, *, kind: int | None = None, offset: int | None = None) -> None:
    """Another type or place for a tensor in the list of the header."""
    content = bytearray(path.read_bytes())
    at = content.rindex(name.encode()) + len(name)
    (dimensions,) = struct.unpack_from("<I", content, at)
    at += 4 + 8 * dimensions
    if kind is not None:
        struct.pack_into("<I", content, at, kind)
    if offset is not None:
        struct.pack_into("<Q", content, at + 4, offset)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": 999}, ["number 999", "Q6_K"]),
        ({"kind": Q.IQ2_XS}, ["IQ2_XS"]),
        ({"kind": Q.I64}, ["I64"]),
        ({"kind": Q.Q4_K}, ["damaged", "rows of 96", "a block of Q4_K is 256"]),
        ({"offset": 2**40}, ["damaged", "not whole"]),
        ({"offset": 2**64 - 32}, ["damaged", "not whole"]),
        ({"offset": 0}, ["damaged", "lies over"]),
        ({"offset": 32}, ["damaged", "lies over"]),
    ],
    ids=str,
)
def test_tensors_of_another_type_or_in_another_place(
    tmp_path: Path, change: dict[str, int], named: list[str]
) -> None:
    path = written(tmp_path)
    patched(path, DOWN, **change)
    refused(path, DOWN if "lies over" not in named else "tensor", *named)


def test_a_file_cut_among_its_tensors(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    starts = sorted(tensor.start for tensor in read_header(path)[1])
    for length in [*starts[:3], starts[-1] + 4, len(whole) - 64]:
        path.write_bytes(whole[:length])
        refused(path, str(path), "damaged", "not whole")


def test_a_width_that_heads_do_not_divide(tmp_path: Path) -> None:
    content = written(tmp_path).read_bytes()
    path = tmp_path / "m.gguf"
    # Without the key of a head's width.
    path.write_bytes(content.replace(b"llama.attention.key_length", b"llama.attention.key_l_ngth"))
    assert GgufFile(path).config.head_dim == SHAPE.hidden // SHAPE.heads
    key = b"llama.attention.head_count\x04\0\0\0"
    path.write_bytes(path.read_bytes().replace(key + b"\x04", key + b"\x05"))
    refused(path, "llama.attention.head_count", "5", "64")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"split.count": 3}, ["split.count", "3"]),
        ({"llama.attention.sliding_window_pattern": 4}, ["sliding_window_pattern", "4"]),
        ({"llama.rope.scaling.type": "linear"}, ["llama.rope.scaling.factor", "missing"]),
        ({"llama.attention.sliding_window": 0.5}, ["llama.attention.sliding_window", "0.5"]),
    ],
    ids=str,
)
def test_keys(tmp_path: Path, fields: dict[str, Any], named: list[str]) -> None:
    refused(written(tmp_path, fields=fields), *named)


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_what_an_architecture_must_have(tmp_path: Path, architecture: str) -> None:
    path = written(tmp_path, architecture=architecture)
    if architecture == "qwen3":
        refused(path, "q_norm.weight", "missing")
    else:
        refused(path, "q_proj.bias", "missing")


def test_biases_that_only_some_layers_have(tmp_path: Path) -> None:
    shape = Shape(layers=2)
    weights = random_weights(shape, attention_bias=True)
    for layer, words in ((0, "not part"), (1, "missing")):
        rest = {
            k: v for k, v in weights.items() if k != f"model.layers.{layer}.self_attn.k_proj.bias"
        }
        path = write_gguf(tmp_path / f"{layer}.gguf", shape, rest)[0].path
        refused(path, "k_proj.bias", words)


def test_frequency_factors_of_another_width(tmp_path: Path) -> None:
    factors = {"rope_freqs.weight": np.ones(SHAPE.head_dim, np.float32)}
    refused(written(tmp_path, extra=factors), "rope_freqs.weight", "[16]", "[8]")


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_frequency_factors_that_turn_nothing(tmp_path: Path, factor: float) -> None:
    factors = np.ones(SHAPE.head_dim // 2, np.float32)
    factors[3] = factor
    refused(
        written(tmp_path, extra={"rope_freqs.weight": factors}), "rope_freqs.weight", "positive"
    )


def test_a_window_counts_if_the_context_is_longer(tmp_path: Path) -> None:
    key = "llama.attention.sliding_window"
    for window, read in ((0, None), (100, 100), (SHAPE.context, None)):
        path = written(tmp_path, fields={key: window})
        assert GgufFile(path).config.sliding_window == read


@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_header_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never another error; and what is read has the tensors of the model."""
    path = written(tmp_path_factory.mktemp("noise"))
    content = bytearray(path.read_bytes())
    end = min(tensor.start for tensor in read_header(path)[1])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        source = GgufFile(path)
        shapes = {name: tuple(source.tensor(name).shape) for name in source.names()}
    except (EngineStartError, StartupError):
        return
    assert shapes == {name: values.shape for name, values in WEIGHTS.items()}
