"""Attention of a step's new tokens over their sequences' pages.

Queries come scaled: ``RopeTable`` multiplies them by the inverse root of the head's width.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from antiphon.engines.torch.models.kv_cache import KVCache


@attrs.define(eq=False)
class SingleToken:
    """One new token of one sequence, on a CPU: two small products in float32.

    torch's fused attention takes 12 µs over 60 keys and 200 over 1,000, these 6 and 70 (3 key heads
    of 64, one row of three queries each, measured). There is no padding and no mask, so what a
    token sees does not depend on who else is in the step.
    """

    rows: slice
    """Its row of the step's tokens."""
    pages: torch.Tensor | None
    """int64 [P]: the pages that hold its keys, to be gathered. None: they follow each other."""
    first: int
    """The slot of the first key it sees: of the gathered pages, or of the pool."""
    length: int
    """Keys that it sees."""

    def queries(self, turned: torch.Tensor, kv_heads: int) -> torch.Tensor:
        """A view of [N, heads, head_dim]: the row's, [kv_heads, shared, head_dim]."""
        return turned[self.rows.start].view(kv_heads, -1, turned.shape[-1])

    def attend(self, queries: torch.Tensor, cache: KVCache, layer: int) -> torch.Tensor:
        """``queries`` -> [1, heads * head_dim]."""
        keys, values = cache.of_one(layer, self.pages, self.first, self.length)
        weights = torch.softmax(torch.bmm(queries, keys), -1)
        return torch.bmm(weights, values).view(1, -1)


@attrs.define(eq=False)
class AttentionGroup:
    """Sequences that attend in one call: ``batch`` of them with equally many new tokens.

    Decodes of like length may share a group, a prompt's chunk is a group of one.
    """

    rows: slice
    """Of the step's tokens, sequence after sequence."""
    batch: int
    pages: torch.Tensor
    """int64 [batch * P]: each sequence's pages, padded to P."""
    first_slot: int | None
    """Where the keys begin if they lie one after the other (a group of one): they are read where
    they are. None: they are gathered page by page."""
    length: int
    """Keys that any of them sees."""
    dtype: torch.dtype
    """In which it is computed."""
    mask: torch.Tensor | None
    """Added to the scores: [batch, 1, heads_per_key * tokens, length], head after head; None if
    every token sees every key."""

    def queries(self, turned: torch.Tensor, kv_heads: int) -> torch.Tensor:
        """A view of [N, heads, head_dim]: the group's, [batch, kv_heads, shared, new, head_dim].

        The query heads that share a key head are laid out as further query rows of that head. That
        is grouped-query attention without repeating keys, and on a CPU up to four times faster than
        ``enable_gqa`` (measured, bfloat16).
        """
        rows = turned[self.rows]
        tokens, heads, head_dim = rows.shape
        shape = (self.batch, tokens // self.batch, kv_heads, heads // kv_heads, head_dim)
        return rows.view(shape).permute(0, 2, 3, 1, 4)

    def attend(self, queries: torch.Tensor, cache: KVCache, layer: int) -> torch.Tensor:
        """``queries`` -> [tokens, heads * head_dim]."""
        if self.first_slot is None:
            keys, values = cache.gather(layer, self.pages, self.batch, self.length)
        else:
            keys, values = cache.span(layer, self.first_slot, self.length)
        batch, kv_heads, shared, new, head_dim = queries.shape
        mixed = F.scaled_dot_product_attention(
            queries.reshape(batch, kv_heads, shared * new, head_dim).to(self.dtype),
            keys.to(self.dtype),
            values.to(self.dtype),
            attn_mask=self.mask,
            scale=1.0,
        )
        mixed = mixed.view(batch, kv_heads, shared, new, head_dim).permute(0, 3, 1, 2, 4)
        return mixed.reshape(batch * new, -1)


Attending: TypeAlias = SingleToken | AttentionGroup
