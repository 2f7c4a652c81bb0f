"""RMS norm over a residual stream that is kept beside its own negative.

torch makes an RMS norm on a CPU out of half a dozen operators (12 µs for a row of 576, measured)
and a layer norm in one (2 µs). Over a row and its negative the mean is zero and the variance is the
mean square, so there the two are the same thing.
Source: Zhang and Sennrich, Root Mean Square Layer Normalization (arXiv 1910.07467).
"""

from __future__ import annotations

import torch


class MirroredNorm:
    """Norms [tokens, 2 * width], a row and its negative; gives [tokens, width]."""

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        self._weight = torch.cat((weight, weight))
        self._shape = (2 * len(weight),)
        self._width = len(weight)
        self._eps = eps

    def __call__(self, stream: torch.Tensor) -> torch.Tensor:
        normed = torch.layer_norm(stream, self._shape, self._weight, None, self._eps)
        return normed.narrow(1, 0, self._width).contiguous()


def mirror(like: torch.Tensor) -> torch.Tensor:
    """[2, 1]: what a row is multiplied by to stand beside its negative."""
    return torch.tensor([[1.0], [-1.0]], dtype=like.dtype, device=like.device)
