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
    """A pool [layers, 2 * kv_heads, slots, head_dim]: a layer's key heads, then its value heads.

    A slot is ``page * PAGE_SIZE + offset``. What one head has of a sequence lies together as far as
    the sequence's pages do, so that reading it is reading on: with all heads of a token side by
    side a step at 4,000 tokens took three times as long. The page behind the last one pads batches
    of unequal length and is never written.
    """

    def __init__(
        self, config: DecoderConfig, pages: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.padding_page = pages
        heads, slots = 2 * config.kv_heads, (pages + 1) * PAGE_SIZE
        try:
            pool = _zeros((config.layers, heads, slots, config.head_dim), dtype, device)
        except (MemoryError, ValueError, RuntimeError) as failure:
            size = page_bytes(config, dtype) * pages
            raise EngineStartError(f"{size} bytes for the KV cache cannot be had") from failure
        self._by_page = pool.view(config.layers, heads, pages + 1, -1)
        # Views cost as much as small operators, so those of a layer are made once.
        self._layers = pool.unbind()
        self._keys = pool[:, : config.kv_heads].unbind()
        self._values = pool[:, config.kv_heads :].unbind()
        self._turned_keys = [keys.transpose(1, 2) for keys in self._keys]
        self._heads, self._kv_heads, self._head_dim = heads, config.kv_heads, config.head_dim

    def clear(self, pages: torch.Tensor) -> None:
        """Zero ``pages`` (int64 [P]) before their first use.

        Sequences that attend together are read to the length of the longest. A mask hides the
        unwritten end of a page but not a NaN in it: one that an earlier sequence left behind would
        reach its new owner.
        """
        if len(pages):
            self._by_page.index_fill_(2, pages, 0)

    def write(self, layer: int, slots: torch.Tensor, keys_values: torch.Tensor) -> None:
        """Store [2 * kv_heads, tokens, head_dim] at ``slots``: int64 [tokens]."""
        self._layers[layer].index_copy_(1, slots, keys_values)

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
        both = self._copied(layer, pages).narrow(1, first, length)
        return both[: self._kv_heads].transpose(1, 2), both[self._kv_heads :]

    def gather(
        self, layer: int, pages: torch.Tensor, batch: int, length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Copies of the keys and values of ``pages`` (int64 [batch * P]).

        The first ``length`` of each sequence, each [batch, kv_heads, length, head_dim].
        """
        both = self._copied(layer, pages).view(2, self._kv_heads, batch, -1, self._head_dim)
        keys, values = both.narrow(3, 0, length).transpose(1, 2).unbind()
        return keys, values

    def _copied(self, layer: int, pages: torch.Tensor) -> torch.Tensor:
        """[2 * kv_heads, P * PAGE_SIZE, head_dim] of ``pages``: int64 [P]."""
        copied = self._by_page[layer].index_select(1, pages)
        return copied.view(self._heads, -1, self._head_dim)


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # numpy asks the system for zeroed memory and does not touch it, torch writes the zeros: so a
    # large pool costs only what is used of it.
    words = np.zeros(shape, dtype=np.uint16 if dtype.itemsize == 2 else np.uint32)
    return torch.from_numpy(words).view(dtype)
