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


_BLOCK = 1 << 14
"""Positions whose angles are computed together."""
_AT_ONCE = 1 << 17
"""Positions that a table on a CPU has from the start; those of a longer one follow when they come.

A context may be given as a thousand million tokens by a file, and is never that long."""


class Rotation:
    """Turns the queries and keys of N tokens, layer after layer into the same place.

    The place and its views are made once a step: a view costs as much as a small operator.
    """

    def __init__(self, cos: torch.Tensor, sin: torch.Tensor, heads: int) -> None:
        """``cos`` and ``sin`` are [N, all heads, 2, head_dim / 2], of which ``heads`` are queries.

        The cosine twice (faster than to spread it each time), minus the sine and the sine; 1 and 0
        for values, which are not turned.
        """
        self._cos, self._sin, self._shape = cos, sin, cos.shape
        self._place = torch.empty_like(cos)
        tokens, count, _, half = cos.shape
        rows = self._place.view(tokens, count * 2 * half)
        self.queries = rows[:, : heads * 2 * half].view(tokens, heads, 2 * half)
        """[N, heads, head_dim], of the layer turned last."""
        self.keys_values = (
            self._place[:, heads:].view(tokens, count - heads, 2 * half).transpose(0, 1)
        )
        """[2 * kv_heads, N, head_dim], as the cache takes them."""

    def turn(self, qkv: torch.Tensor) -> None:
        """[N, all heads * head_dim]: queries, keys and values of a layer."""
        halves = qkv.to(self._place.dtype).view(self._shape)
        torch.mul(halves, self._cos, out=self._place).addcmul_(halves.flip(2), self._sin)


class RopeTable:
    """The factors of every position below ``positions``, and of no turn at all.

    ``dtype`` is what queries, keys and values are turned in, and so kept in. Queries are multiplied
    by ``1 / sqrt(head_dim)`` as well, which attention would do otherwise.
    """

    def __init__(
        self, config: DecoderConfig, positions: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._turns = frequencies(config)
        self._positions = positions
        self._filled = 0
        self._cos = torch.empty((positions + 1, config.head_dim), device=device, dtype=dtype)
        self._sin = torch.empty_like(self._cos)
        self._cos[positions], self._sin[positions] = 1, 0
        # To ask a device which positions come next is to wait for it.
        self._fill(positions if device.type != "cpu" else min(positions, _AT_ONCE))
        self._still = torch.full((1, config.kv_heads), positions, device=device)
        self._turning, self._queries = config.heads + config.kv_heads, config.heads
        self._scale = config.head_dim**-0.5

    def _fill(self, end: int) -> None:
        """Make sure of the rows below ``end``, a block at a time: angles take eight bytes each."""
        while self._filled < end:
            start, stop = self._filled, min(self._filled + _BLOCK, self._positions)
            angles = torch.outer(torch.arange(start, stop, dtype=torch.float64), self._turns)
            cos, sin = angles.cos(), angles.sin()
            self._cos[start:stop] = torch.cat((cos, cos), dim=1)
            self._sin[start:stop] = torch.cat((-sin, sin), dim=1)
            self._filled = stop

    def at(self, positions: torch.Tensor) -> Rotation:
        """Those of ``positions``: int64 [N]."""
        tokens = positions.shape[0]
        if self._filled < self._positions:
            self._fill(int(positions.max()) + 1)
        turning = positions.unsqueeze(1).expand(tokens, self._turning)
        rows = torch.cat((turning, self._still.expand(tokens, -1)), dim=1)
        shape = (tokens, rows.shape[1], 2, -1)
        cos = self._cos.index_select(0, rows.view(-1)).view(shape)
        sin = self._sin.index_select(0, rows.view(-1)).view(shape)
        for factor in (cos, sin):
            factor[:, : self._queries].mul_(self._scale)
        return Rotation(cos, sin, self._queries)
