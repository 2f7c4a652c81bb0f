"""Every type of tensor is read as the ``gguf`` package and ggml's own formulas have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from antiphon.engines.torch.weights.gguf_tensors import TYPES, GgufTensors
from antiphon.models.gguf_metadata import read_header

ROWS, WIDTH = 5, 512
EXACT = {"F32": 0.0, "F16": 1e-3, "BF16": 8e-3}
"""Error of a float type, as a part of the number."""
STEPS = {"Q8_0": 1 / 127, "Q4_0": 1 / 7, "Q4_1": 1 / 7, "Q5_0": 1 / 15, "Q5_1": 1 / 15}
"""Error of an integer type, as a part of the largest number of its block."""
K_SCALES = {"Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
"""Where the float16 scales of a block of 256 are; every other byte may be anything."""


def read(path: Path, data: Any, kind: gguf.GGMLQuantizationType) -> Any:
    """The tensor ``data`` through a file in which it stands behind another."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("before", np.arange(3, dtype=np.float32))
    writer.add_tensor("t", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensors = GgufTensors(path, read_header(path)[1])
    assert tensors.kind("t") == kind.name
    assert tensors.shapes["t"] == (ROWS, WIDTH)
    return tensors.floats("t")


@pytest.mark.parametrize("name", [*EXACT, *STEPS])
def test_types_that_numbers_can_be_written_in(tmp_path: Path, name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    values = np.random.default_rng(4).standard_normal((ROWS, WIDTH)).astype(np.float32)
    data = gguf.quants.quantize(values, kind)
    found = read(tmp_path / "m.gguf", data, kind)
    np.testing.assert_array_equal(found, gguf.quants.dequantize(data, kind))
    if name in EXACT:
        np.testing.assert_allclose(found, values, rtol=EXACT[name], atol=0)
    else:
        blocks = np.abs(values).reshape(ROWS, -1, 32).max(axis=-1, keepdims=True)
        error = np.abs(found - values).reshape(ROWS, -1, 32)
        assert (error <= blocks * STEPS[name] * 1.01).all()


@pytest.mark.parametrize("name", K_SCALES)
def test_blocks_of_256(tmp_path: Path, name: str) -> None:
    """Blocks of noise, as the package has no writer for them, against the formulas of ggml."""
    kind = gguf.GGMLQuantizationType[name]
    dice = np.random.default_rng(6)
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = dice.integers(0, 256, (ROWS * WIDTH // 256, size), dtype=np.uint8)
    for place in K_SCALES[name]:
        scales = dice.uniform(-0.1, 0.1, len(blocks)).astype(np.float16)
        blocks[:, place : place + 2] = scales[:, None].view(np.uint8)
    found = read(tmp_path / "m.gguf", blocks.reshape(ROWS, -1), kind)
    np.testing.assert_array_equal(found, gguf.quants.dequantize(blocks.reshape(ROWS, -1), kind))
    expected = np.array([FORMULAS[name](bytes(block)) for block in blocks])
    np.testing.assert_allclose(found, expected.reshape(ROWS, WIDTH), rtol=1e-5, atol=1e-5)


def half(block: bytes, at: int) -> float:
    return float(np.frombuffer(block, np.float16, 1, at)[0])


def scale_and_minimum(scales: bytes, j: int) -> tuple[int, int]:
    """Six bits each, of eight groups in twelve bytes: ``get_scale_min_k4``."""
    if j < 4:
        return scales[j] & 63, scales[j + 4] & 63
    low, high = scales[j + 4], (scales[j - 4] >> 6, scales[j] >> 6)
    return (low & 15) | high[0] << 4, (low >> 4) | high[1] << 4


def four_bits(block: bytes) -> list[float]:
    """``block_q4_K``: two float16, twelve bytes of scales, 128 bytes of codes."""
    d, dmin, codes = half(block, 0), half(block, 2), block[16:]
    values = []
    for j in range(8):
        scale, minimum = scale_and_minimum(block[4:16], j)
        pair = codes[j // 2 * 32 :][:32]
        bits = [one >> 4 * (j % 2) & 15 for one in pair]
        values += [d * scale * code - dmin * minimum for code in bits]
    return values


def five_bits(block: bytes) -> list[float]:
    """``block_q5_K``: as four bits, with 32 bytes of fifth bits before the codes."""
    d, dmin, high, codes = half(block, 0), half(block, 2), block[16:48], block[48:]
    values = []
    for j in range(8):
        scale, minimum = scale_and_minimum(block[4:16], j)
        pair = codes[j // 2 * 32 :][:32]
        bits = [
            (one >> 4 * (j % 2) & 15) | (fifth >> j & 1) << 4
            for one, fifth in zip(pair, high, strict=True)
        ]
        values += [d * scale * code - dmin * minimum for code in bits]
    return values


def six_bits(block: bytes) -> list[float]:
    """``block_q6_K``: 128 bytes of low bits, 64 of high ones, 16 signed scales, a float16."""
    scales, d = np.frombuffer(block, np.int8, 16, 192), half(block, 208)
    values = []
    for place in range(256):
        part, within = divmod(place, 128)
        quarter, column = divmod(within, 32)
        low = block[part * 64 + column + 32 * (quarter % 2)] >> 4 * (quarter // 2) & 15
        high = block[128 + part * 32 + column] >> 2 * quarter & 3
        values.append(d * int(scales[place // 16]) * ((low | high << 4) - 32))
    return values


FORMULAS = {"Q4_K": four_bits, "Q5_K": five_bits, "Q6_K": six_bits}


def test_every_type_is_tried() -> None:
    assert {*EXACT, *STEPS, *K_SCALES} == set(TYPES)
