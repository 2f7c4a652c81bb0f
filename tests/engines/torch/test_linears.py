"""The forms of a matrix against the product in float64, within what their rounding can do."""

from __future__ import annotations

import gguf
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.torch.models.linear import AnyLinear, Int8Head, byte_steps
from antiphon.engines.torch.weights.packing import in_groups, pack4, pack8, pack_head, to_blocks
from antiphon.engines.torch.weights.source import Q4Blocks

HALF = 2.0**-8
"""Relative error of a rounding to bfloat16."""
SIZES = st.sampled_from([(16, 32), (64, 96), (48, 576), (160, 64)])
ROWS = st.integers(1, 20)
"""On both sides of where the products change over."""


def dice(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def doubles(blocks: Q4Blocks) -> torch.Tensor:
    """The matrix that the integers stand for."""
    groups = blocks.codes.double().view(len(blocks.codes), -1, 32)
    values = groups * blocks.scale.double()[..., None] + blocks.minimum.double()[..., None]
    return values.view(blocks.codes.shape)


def check(linear: AnyLinear, exact: torch.Tensor, x: torch.Tensor, reach: torch.Tensor) -> None:
    """``reach`` is [out, in]: the magnitudes that are rounded to make up a weight."""
    want = x.double() @ exact.T
    bias = torch.zeros(()) if linear.bias is None else linear.bias.double()
    # A rounding of every weight, one of each half of a sum, one of the sum, one of the biased sum.
    spread = x.double().abs() @ reach.T
    bound = HALF * (spread + 2 * spread + want.abs() + (want + bias).abs())
    error = (linear(x).double() - (want + bias)).abs()
    assert (error <= bound + 1e-6).all()


@given(SIZES, ROWS, st.integers(0, 9), st.booleans())
def test_four_bits_are_those_of_the_file(
    size: tuple[int, int], rows: int, seed: int, biased: bool
) -> None:
    out, width = size
    codes = torch.randint(0, 16, size, generator=torch.Generator().manual_seed(seed))
    scale, minimum = dice(seed, out, width // 32).abs(), dice(seed + 1, out, width // 32)
    blocks = Q4Blocks(codes.to(torch.uint8), scale, minimum)
    exact = doubles(blocks)
    bias = dice(seed + 2, out).bfloat16() if biased else None
    linear = pack4(blocks, exact.bfloat16(), bias)
    offset = (minimum + 8 * scale).double().abs().repeat_interleave(32, 1)
    reach = scale.double().repeat_interleave(32, 1) * 8 + offset
    check(linear, exact, dice(seed + 3, rows, width).bfloat16(), reach)


@given(SIZES, st.integers(0, 9))
def test_four_bits_of_floats_are_the_nearest_of_sixteen_steps(
    size: tuple[int, int], seed: int
) -> None:
    exact = dice(seed, *size)
    blocks = to_blocks(exact)
    error = (doubles(blocks) - exact).abs().view(size[0], -1, 32)
    assert blocks.codes.max() <= 15
    assert (error <= blocks.scale.double()[..., None] / 2 * (1 + 1e-4) + 1e-9).all()


@given(SIZES, ROWS, st.integers(0, 9), st.booleans())
def test_eight_bits_of_floats(size: tuple[int, int], rows: int, seed: int, biased: bool) -> None:
    exact = dice(seed, *size)
    bias = dice(seed + 2, size[0]).bfloat16() if biased else None
    linear = pack8(exact, exact.bfloat16(), bias)
    greatest = exact.view(size[0], -1, 32).abs().amax(-1).double().repeat_interleave(32, 1)
    # The halves: 16 * 8 and 15 + 8 + 8 steps of 1 / 127; half a step of rounding is less than one
    # of bfloat16.
    check(linear, exact.double(), dice(seed + 3, rows, size[1]).bfloat16(), greatest * 2)


def test_eight_bits_of_a_file_are_its_own() -> None:
    """Q8_0 through float32 and back: to a rounding of the scale the weights are the same."""
    stored = gguf.quants.quantize(dice(5, 16, 64).numpy(), gguf.GGMLQuantizationType.Q8_0)
    exact = torch.from_numpy(gguf.quants.dequantize(stored, gguf.GGMLQuantizationType.Q8_0).copy())
    linear = pack8(exact, exact.bfloat16(), None)
    one_hot = torch.eye(64).bfloat16()
    found = torch.cat([linear(row[None]) for row in one_hot]).T.double()
    step = exact.view(16, -1, 32).abs().amax(-1).repeat_interleave(32, 1) / 127
    assert ((found - exact).abs() <= HALF * (2 * exact.abs() + 32 * step)).all()


@given(SIZES, ROWS, st.integers(0, 9))
def test_the_head_loses_its_weights_rounding_and_nothing_else(
    size: tuple[int, int], rows: int, seed: int
) -> None:
    head = pack_head(dice(seed, *size))
    x = dice(seed + 1, rows, size[1]) * torch.logspace(-2, 2, rows)[:, None]
    held = head.codes.double() * head.scales.double()[:, None]
    assert ((held - dice(seed, *size)).abs() <= head.scales.double()[:, None] * 0.501).all()
    # An activation is off by half a step of its second byte.
    step = x.abs().amax(-1, keepdim=True).double() / byte_steps()
    bound = step / byte_steps() / 4 @ held.abs().sum(-1)[None] + 1e-5 * (
        x.double().abs() @ held.abs().T
    )
    assert ((head(x).double() - x.double() @ held.T).abs() <= bound).all()


@given(st.integers(2, 12), st.integers(0, 9))
def test_a_row_of_logits_is_the_same_whatever_is_beside_it(rows: int, seed: int) -> None:
    head = pack_head(dice(seed, 64, 96))
    x = dice(seed + 1, rows, 96)
    assert torch.equal(head(x), torch.cat([head(row[None]) for row in x]))


def test_the_greatest_sums_fit() -> None:
    """Where two products of bytes are added in sixteen bits, an activation has fewer steps."""
    head = Int8Head(torch.full((16, 64), 127, dtype=torch.int8), torch.ones(16))
    for sign in (1, -1):
        assert torch.allclose(head(torch.full((1, 64), 3.0 * sign)), torch.tensor(sign * 24_384.0))


def test_rows_of_zeros_are_no_division_by_zero() -> None:
    zeros = torch.zeros(16, 32)
    x = torch.zeros(1, 32)
    for linear in (pack4(to_blocks(zeros), zeros.bfloat16(), None), pack_head(zeros),
                   pack8(zeros, zeros.bfloat16(), None)):  # fmt: skip
        assert not linear(x).any()


@pytest.mark.parametrize("rows", [1, 20])
def test_few_bits_beside_float32(rows: int) -> None:
    exact, x = dice(1, 32, 64), dice(2, rows, 64)
    for linear in (pack4(to_blocks(exact), exact, None), pack8(exact, exact, None)):
        made = linear(x)
        assert made.dtype is torch.float32
        assert (made - x @ exact.T).abs().max() < 4


def test_what_the_kernel_takes() -> None:
    assert in_groups(16, 32)
    assert not in_groups(16, 48)
    assert not in_groups(24, 32)
