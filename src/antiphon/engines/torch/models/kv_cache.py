"""Keys and values of all layers in pages of 16 tokens."""

from __future__ import annotations

import numpy as np
import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.pages import PAGE_SIZE


def cache_dtype(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """What keys and values of a decoder of ``dtype`` are kept in: float32 on a CPU.

    One query against them is then a matter of two plain products, where bfloat16 would have to be
    repacked each time. It takes twice the memory.
    """
    return torch.float32 if device.type == "cpu" else dtype


def page_bytes(config: DecoderConfig, dtype: torch.dtype) -> int:
    """Bytes of one page over all layers."""
    return 2 * config.layers * PAGE_SIZE * config.kv_size * dtype.itemsize


class KVCache:
    """A pool [layers, pages + 1, PAGE_SIZE, 2 * kv_heads * head_dim].

    A token's key and its value lie side by side, as the layer's projection gives them: they are
    written by one operator and read by one. The page behind the last one pads batches of unequal
    length and is never written.
    """

    def __init__(
        self, config: DecoderConfig, pages: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.padding_page = pages
        width = 2 * config.kv_size
        try:
            pool = _zeros((config.layers, pages + 1, PAGE_SIZE, width), dtype, device)
        except (MemoryError, ValueError, RuntimeError) as failure:
            size = page_bytes(config, dtype) * pages
            raise EngineStartError(f"{size} bytes for the KV cache cannot be had") from failure
        self._pool = pool
        # Views cost as much as small operators, so those of a layer are made once.
        self._by_slot = pool.view(config.layers, -1, width).unbind()
        self._by_page = pool.view(config.layers, pages + 1, -1).unbind()
        heads = pool.view(config.layers, -1, 2, config.kv_heads, config.head_dim)
        self._keys = heads[:, :, 0].transpose(1, 2).unbind()
        self._values = heads[:, :, 1].transpose(1, 2).unbind()
        self._turned_keys = [keys.transpose(1, 2) for keys in self._keys]
        self._shape = (2, config.kv_heads, config.head_dim)

    def clear(self, pages: torch.Tensor) -> None:
        """Zero ``pages`` (int64 [P]) before their first use.

        A mask hides the unwritten end of a page but not a NaN in it: one that an earlier sequence
        left behind would reach its new owner.
        """
        if len(pages):
            self._pool.index_fill_(1, pages, 0)

    def write(self, layer: int, slots: torch.Tensor, keys_values: torch.Tensor) -> None:
        """Store [tokens, 2 * kv_size] at ``slots`` (page * PAGE_SIZE + offset): int64 [tokens]."""
        self._by_slot[layer].index_copy_(0, slots, keys_values)

    def span(self, layer: int, first: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of one sequence whose pages follow each other, where they are.

        ``length`` slots from ``first`` on, each [1, kv_heads, length, head_dim].
        """
        return (
            self._keys[layer].narrow(1, first, length).unsqueeze(0),
            self._values[layer].narrow(1, first, length).unsqueeze(0),
        )

    def of_one(
        self, layer: int, pages: torch.Tensor | None, first: int, length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``length`` keys and values of one sequence for a single query.

        [kv_heads, head_dim, length] and [kv_heads, length, head_dim]. They begin at slot ``first``
        of the pool, or of ``pages`` (int64 [P]), which are copied.
        """
        if pages is None:
            return (
                self._turned_keys[layer].narrow(2, first, length),
                self._values[layer].narrow(1, first, length),
            )
        both = self._by_page[layer].index_select(0, pages).view(-1, *self._shape)
        both = both.narrow(0, first, length)
        return both.select(1, 0).permute(1, 2, 0), both.select(1, 1).transpose(0, 1)

    def gather(
        self, layer: int, pages: torch.Tensor, batch: int, length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Copies of the keys and values of ``pages`` (int64 [batch * P]).

        The first ``length`` of each sequence, each [batch, kv_heads, length, head_dim].
        """
        both = self._by_page[layer].index_select(0, pages).view(batch, -1, *self._shape)
        keys, values = both.narrow(1, 0, length).transpose(1, 3).unbind(2)
        return keys, values


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # numpy asks the system for zeroed memory and does not touch it, torch writes the zeros: so a
    # large pool costs only what is used of it.
    words = np.zeros(shape, dtype=np.uint16 if dtype.itemsize == 2 else np.uint32)
    return torch.from_numpy(words).view(dtype)
