"""From floating matrices, or the integers of a file, to what the kernels of few bits read."""

from __future__ import annotations

import torch

from antiphon.engines.torch.models.linear import INT4_GROUP, Int4Linear, Int8Head, Int8Linear
from antiphon.engines.torch.weights.source import Q4Blocks

INT4_ROW_MULTIPLE = 16
"""The four-bit kernel takes rows by so many."""


def in_groups(rows: int, width: int) -> bool:
    """Whether the kernel takes a matrix [rows, width]."""
    return width % INT4_GROUP == 0 and rows % INT4_ROW_MULTIPLE == 0


def to_blocks(weight: torch.Tensor) -> Q4Blocks:
    """Round float32 [out, in] to the nearest of 16 steps between a group's ends.

    The error of a weight is at most half a step: a thirtieth of its group's range.
    """
    groups = weight.view(len(weight), -1, INT4_GROUP)
    minimum = groups.amin(-1)
    scale = (groups.amax(-1) - minimum).div_(15)
    codes = (groups - minimum[..., None]).div_(scale[..., None].clamp(min=1e-30)).round_()
    return Q4Blocks(codes.clamp_(0, 15).to(torch.uint8).view(weight.shape), scale, minimum)


def pack4(blocks: Q4Blocks, weight: torch.Tensor, bias: torch.Tensor | None) -> Int4Linear:
    """The form of the four-bit kernel; ``weight`` is the same matrix in the model's type."""
    packed, scales = _packed(blocks.codes, blocks.scale, blocks.minimum)
    return Int4Linear(packed, scales, weight, bias)


def pack8(exact: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Int8Linear:
    """Eight bits a weight of ``exact``; ``weight`` is the same matrix in the model's type.

    The error of a weight is at most half a step: 1 / 254 of its group's greatest. Of what a file
    has in Q8_0 the codes come out as they are there, whose greatest is 127 as well.
    """
    groups = exact.float().reshape(len(exact), -1, INT4_GROUP)
    scale = groups.abs().amax(-1).div_(127)
    codes = (groups / scale.clamp(min=1e-30)[..., None]).round_().view(exact.shape).int()
    # A shift rounds down, so the lower half is never negative.
    high, high_scales = _packed((codes >> 4) + 8, 16 * scale, -128 * scale)
    low, low_scales = _packed(codes & 15, scale, torch.zeros_like(scale))
    return Int8Linear(high, high_scales, low, low_scales, weight, bias)


def pack_head(exact: torch.Tensor) -> Int8Head:
    """The matrix of the logits: int8 [out, in], and one scale for each row's greatest."""
    exact = exact.float()
    scales = exact.abs().amax(-1).div_(127)
    codes = (exact / scales.clamp(min=1e-30)[:, None]).round_().to(torch.int8)
    return Int8Head(codes, scales)


def _packed(
    codes: torch.Tensor, scale: torch.Tensor, minimum: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes in the kernel's order; scale and offset of ``scale * (code - 8) + offset``."""
    scales = torch.stack((scale, minimum + 8 * scale), dim=-1).transpose(0, 1)
    return (
        torch._convert_weight_to_int4pack_for_cpu(codes.int(), 1),
        scales.bfloat16().contiguous(),
    )
