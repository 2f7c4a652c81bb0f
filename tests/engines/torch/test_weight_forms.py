"""How an engine holds its matrices, by file and by setting; and the forms taken apart and back."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest
import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.decoder import Decoder
from antiphon.engines.torch.models.linear import Linear
from antiphon.engines.torch.models.weights import DecoderWeights, flatten, rebuild
from antiphon.engines.torch.weights.assemble import Form, assemble
from antiphon.engines.torch.weights.gguf_file import GgufFile
from engines.torch.tiny_models import Shape, random_weights, write_gguf

SHAPE = Shape(vocab=96, hidden=64, ffn=96)
CPU = torch.device("cpu")
Q = gguf.GGMLQuantizationType
Q4 = {"proj.weight": Q.Q4_1, "embed_tokens.weight": Q.Q8_0}
Q8 = {"proj.weight": Q.Q8_0}
MIXED = {"v_proj.weight": Q.Q8_0} | Q4


def a_source(folder: Path, kinds: dict[str, gguf.GGMLQuantizationType]) -> GgufFile:
    files, _ = write_gguf(folder / "m.gguf", SHAPE, random_weights(SHAPE), quantised=kinds)
    return GgufFile(files.path)


def kinds(weights: DecoderWeights) -> list[str]:
    layer = weights.layers[0]
    parts = (layer.qkv, layer.output, layer.gate_up, layer.down, weights.head)
    return [part.kind for part in parts]


@pytest.mark.parametrize(
    ("stored", "form", "held"),
    [
        (Q4, "auto", ["int4", "int4", "int4", "int4", "head8"]),
        (Q8, "auto", ["int8", "int8", "int8", "int8", "head8"]),
        (MIXED, "auto", ["int8", "int4", "int4", "int4", "head8"]),
        ({}, "auto", ["float"] * 5),
        ({}, "int4", ["int4", "int4", "int4", "int4", "head8"]),
        ({}, "int8", ["int8", "int8", "int8", "int8", "head8"]),
        (Q4, "float", ["float"] * 5),
    ],
)
def test_what_is_held_how(
    tmp_path: Path, stored: dict[str, gguf.GGMLQuantizationType], form: Form, held: list[str]
) -> None:
    source = a_source(tmp_path, stored)
    weights = assemble(source, torch.bfloat16, CPU, form)
    assert kinds(weights) == held
    # Auto is for speed where rounding is done anyway; float32 was asked for to have none.
    exact = assemble(source, torch.float32, CPU, "auto")
    assert set(kinds(exact)) == {"float"}
    assert isinstance(exact.head, Linear)
    assert exact.head.weight is exact.embedding


@pytest.mark.parametrize("form", ["auto", "int4", "int8"])
def test_few_bits_are_near_the_matrix_of_the_file(tmp_path: Path, form: Form) -> None:
    weights = assemble(a_source(tmp_path, Q4), torch.float32, CPU, form)
    exact = assemble(a_source(tmp_path, Q4), torch.float32, CPU, "float")
    x = torch.eye(SHAPE.hidden)[:10]
    for layer, want in zip(weights.layers, exact.layers, strict=True):
        for one, other in ((layer.qkv, want.qkv), (layer.gate_up, want.gate_up)):
            # One weight each: off by roundings to bfloat16, and in eight bits by half a step.
            assert torch.allclose(one(x[:3]), other(x[:3]), rtol=0.01, atol=0.02)
            assert torch.equal(one(torch.cat([x, x])), other(torch.cat([x, x]))), "many rows"


def test_matrices_that_are_no_groups_of_32_are_kept_in_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shape = Shape(hidden=48, heads=3, kv_heads=1, head_dim=16, ffn=64)
    files, _ = write_gguf(tmp_path / "m.gguf", shape, random_weights(shape))
    weights = assemble(GgufFile(files.path), torch.bfloat16, CPU, "int4")
    assert kinds(weights) == ["float", "float", "float", "int4", "head8"]
    assert "gate_proj, model.layers.0.mlp.up_proj: a matrix of 128 x 48" in caplog.text


@pytest.mark.parametrize("form", ["int4", "int8"])
def test_a_form_without_a_kernel_is_refused(tmp_path: Path, form: Form) -> None:
    with pytest.raises(EngineStartError, match=rf"weights {form} need the CPU; on cuda give auto"):
        assemble(a_source(tmp_path, Q4), torch.bfloat16, torch.device("cuda"), form)


@pytest.mark.parametrize("form", ["float", "auto", "int8"])
@pytest.mark.parametrize("tied", [True, False])
def test_taken_apart_and_put_together_again(tmp_path: Path, form: Form, tied: bool) -> None:
    weights = random_weights(SHAPE, tied=tied, attention_bias=True)
    files, _ = write_gguf(tmp_path / "m.gguf", SHAPE, weights, quantised=Q4)
    source = GgufFile(files.path)
    there = assemble(source, torch.bfloat16, CPU, form)
    flat = flatten(there)
    back = rebuild({name: tensor.clone() for name, tensor in flat.items()})
    assert kinds(back) == kinds(there)
    assert flatten(back).keys() == flat.keys()
    assert all(torch.equal(flat[name], tensor) for name, tensor in flatten(back).items())
    states = torch.randn(3, SHAPE.hidden).bfloat16()
    logits = [Decoder(source.config, one, 64).logits(states) for one in (there, back)]
    assert torch.equal(*logits)
