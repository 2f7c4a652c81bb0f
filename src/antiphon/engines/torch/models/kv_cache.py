"""Keys and values of all layers in pages of 16 tokens."""

from __future__ import annotations

import numpy as np
import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.pages import PAGE_SIZE


def page_bytes(config: DecoderConfig, dtype: torch.dtype) -> int:
    """Bytes of one page over all layers."""
    return 2 * config.layers * PAGE_SIZE * config.kv_size * dtype.itemsize


class KVCache:
    """A pool [layers, 2, pages + 1, PAGE_SIZE, kv_heads * head_dim].

    The page behind the last one pads batches of unequal length and is never written.
    """

    def __init__(
        self, config: DecoderConfig, pages: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.padding_page = pages
        shape = (config.layers, 2, pages + 1, PAGE_SIZE, config.kv_size)
        try:
            self._pool = _zeros(shape, dtype, device)
        except (MemoryError, ValueError, RuntimeError) as failure:
            size = page_bytes(config, dtype) * pages
            raise EngineStartError(f"{size} bytes for the KV cache cannot be had") from failure

    def clear(self, pages: torch.Tensor) -> None:
        """Zero ``pages`` (int64 [P]) before their first use.

        A mask hides the unwritten end of a page but not a NaN in it: one that an earlier sequence
        left behind would reach its new owner.
        """
        self._pool.index_fill_(2, pages, 0)

    def write(
        self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Store [tokens, kv_size] at ``slots`` (page * PAGE_SIZE + offset): int64 [tokens]."""
        pool = self._pool[layer].flatten(1, 2)
        pool[0].index_copy_(0, slots, keys)
        pool[1].index_copy_(0, slots, values)

    def read(self, layer: int, pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of ``pages`` (int64 [P]), each [P * PAGE_SIZE, kv_size]."""
        pool = self._pool[layer].flatten(2, 3)
        width = self._pool.shape[-1]
        return (
            pool[0].index_select(0, pages).view(-1, width),
            pool[1].index_select(0, pages).view(-1, width),
        )


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # numpy asks the system for zeroed memory and does not touch it, torch writes the zeros: so a
    # large pool costs only what is used of it.
    words = np.zeros(shape, dtype=np.uint16 if dtype.itemsize == 2 else np.uint32)
    return torch.from_numpy(words).view(dtype)
