"""Rotary position embedding in the half-split form: dimension i turns with i + head_dim / 2.

Source: Su et al., RoFormer (arXiv 2104.09864); the scaling of Llama 3.1 as in its reference code.
"""

from __future__ import annotations

import math

import attrs
import torch

from antiphon.engines.torch.models.config import (
    DecoderConfig,
    FrequencyFactors,
    LinearScaling,
    Llama3Scaling,
)


def frequencies(config: DecoderConfig) -> torch.Tensor:
    """Radians per position of each pair of dimensions: float64 [head_dim / 2]."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    plain = config.rope_theta**-exponents
    match config.rope_scaling:
        case None:
            return plain
        case LinearScaling(factor):
            return plain / factor
        case FrequencyFactors(factors):
            return plain / torch.tensor(factors, dtype=torch.float64)
        case Llama3Scaling() as rule:
            return _llama3(plain, rule)


def _llama3(plain: torch.Tensor, rule: Llama3Scaling) -> torch.Tensor:
    """Wavelengths beyond context / low are slowed, those within context / high are kept."""
    turns = rule.original_context_length * plain / (2 * math.pi)
    kept = (turns - rule.low_freq_factor) / (rule.high_freq_factor - rule.low_freq_factor)
    kept = kept.clamp(0, 1)
    return plain * (kept + (1 - kept) / rule.factor)


@attrs.define(eq=False)
class Rotation:
    """Factors of the angles of N positions, for both halves of a head."""

    cos: torch.Tensor
    """[N, 1, 1, head_dim / 2]"""
    sin: torch.Tensor
    """[N, 1, 2, head_dim / 2]: minus the sine, then the sine."""

    def at(self, positions: torch.Tensor) -> Rotation:
        """Those of ``positions``: int64 [N]."""
        return Rotation(self.cos.index_select(0, positions), self.sin.index_select(0, positions))


def rope_table(
    config: DecoderConfig, positions: int, dtype: torch.dtype, device: torch.device
) -> Rotation:
    """The factors of every position below ``positions``."""
    at = torch.arange(positions, dtype=torch.float64)
    angles = torch.outer(at, frequencies(config))[:, None, None]
    cos, sin = angles.cos(), angles.sin()
    sin = torch.cat((-sin, sin), dim=2)
    return Rotation(cos.to(device, dtype), sin.to(device, dtype))


def rotate_(heads: torch.Tensor, turn: Rotation) -> None:
    """Turn [tokens, heads, head_dim] in place; ``turn`` is of the same tokens."""
    tokens, count, head_dim = heads.shape
    halves = heads.view(tokens, count, 2, head_dim // 2)
    swapped = halves.flip(2)
    halves.mul_(turn.cos).addcmul_(swapped, turn.sin)
