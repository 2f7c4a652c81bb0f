"""What every kind of model file gives the decoder."""

from __future__ import annotations

from typing import Protocol

import attrs
import torch

from antiphon.engines.torch.models.config import DecoderConfig

Q4_GROUP = 32
"""Weights of a row that share a scale and a minimum."""


@attrs.frozen(eq=False)
class Q4Blocks:
    """A matrix [out, in] as its file holds it: weight = scale * code + minimum, per group."""

    codes: torch.Tensor
    """uint8 [out, in], 0 to 15."""
    scale: torch.Tensor
    """float32 [out, in / Q4_GROUP]."""
    minimum: torch.Tensor
    """float32 [out, in / Q4_GROUP]."""


class WeightSource(Protocol):
    """An opened model. Tensors go by the names of Hugging Face's Llama.

    Query and key rows come half-split, whatever the file holds.
    """

    @property
    def config(self) -> DecoderConfig:
        """The decoder's shape."""
        ...

    def names(self) -> set[str]:
        """The names of all tensors that are part of the model."""
        ...

    def tensor(self, name: str) -> torch.Tensor:
        """A tensor on the CPU, in any floating type. Raises ``EngineStartError``."""
        ...

    def bits(self, name: str) -> int:
        """Of a weight as the file holds it, in the forms that can be kept: 4, 8, or 16 for all
        others."""
        ...

    def quantised(self, name: str) -> Q4Blocks | None:
        """The integers of a tensor that is stored in groups of four bits, not requantised.

        None for one that is stored in another way. Raises ``EngineStartError``.
        """
        ...
