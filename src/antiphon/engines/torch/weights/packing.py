"""From floating matrices, or the integers of a file, to what the kernels of few bits read."""

from __future__ import annotations

import torch

from antiphon.engines.torch.models.linear import INT4_GROUP, Int4Linear, Int8Head, Int8Linear
from antiphon.engines.torch.weights.source import Q4Blocks

INT4_ROW_MULTIPLE = 16
"""The four-bit kernel takes rows by so many."""


def fits_int4(rows: int, width: int) -> bool:
    """Whether a matrix [rows, width] can be held in four bits."""
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
    # The kernel's formula is scale * (code - 8) + offset.
    offset = blocks.minimum + 8 * blocks.scale
    scales = torch.stack((blocks.scale, offset), dim=-1).transpose(0, 1).bfloat16().contiguous()
    packed = torch._convert_weight_to_int4pack_for_cpu(blocks.codes.int(), 1)
    return Int4Linear(packed, scales, weight, bias)


def rounded8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 [out, in] and float32 [out]: [out, in] rounded to 127 steps of each row's greatest.

    The error of a weight is at most half a step: 1 / 254 of its row's greatest.
    """
    weight = weight.float()
    scales = weight.abs().amax(-1).div_(127)
    codes = (weight / scales.clamp(min=1e-30)[:, None]).round_().to(torch.int8)
    return codes, scales


def pack8(exact: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Int8Linear:
    """Eight bits a weight of ``exact``; ``weight`` is the same matrix in the model's type."""
    codes, scales = rounded8(exact)
    return Int8Linear(codes, scales.to(weight.dtype), weight, bias)


def pack_head(exact: torch.Tensor) -> Int8Head:
    """The matrix of the logits in eight bits."""
    return Int8Head(*rounded8(exact))
