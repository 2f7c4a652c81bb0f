"""What every kind of model file gives the decoder."""

from __future__ import annotations

from typing import Protocol

import torch

from antiphon.engines.torch.models.config import DecoderConfig


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
