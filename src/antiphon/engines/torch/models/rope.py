"""Rotary position embedding in the half-split form: dimension i turns with i + head_dim / 2.

Source: Su et al., RoFormer (arXiv 2104.09864); the scaling of Llama 3.1 as in its reference code.
"""

from __future__ import annotations

import math

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


def rope_table(config: DecoderConfig, positions: int, device: torch.device) -> torch.Tensor:
    """Cosines, then sines, of every position: float32 [2, positions, head_dim / 2]."""
    at = torch.arange(positions, dtype=torch.float64)
    angles = torch.outer(at, frequencies(config))
    return torch.stack((angles.cos(), angles.sin())).float().to(device)


def rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn [tokens, heads, head_dim] by [tokens, 1, head_dim / 2]; computed in float32."""
    first, second = heads.float().chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(heads.dtype)
