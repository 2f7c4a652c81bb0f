"""Attention of a step's new tokens over their sequences' pages."""

from __future__ import annotations

import attrs
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from antiphon.engines.torch.models.kv_cache import KVCache


@attrs.define(eq=False)
class AttentionGroup:
    """Sequences that attend in one call: ``batch`` of them with equally many new tokens.

    Decodes of like length share a group, a prompt's chunk is a group of one.
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
    mask: torch.Tensor | None
    """Added to the scores: [batch, 1, heads_per_key * tokens, length], head after head; None if
    every token sees every key."""


def query_rows(queries: torch.Tensor, group: AttentionGroup, kv_heads: int) -> torch.Tensor:
    """A view of [N, heads, head_dim]: the group's, [batch, kv_heads, shared, new, head_dim].

    The query heads that share a key head are laid out as further query rows of that head. That is
    grouped-query attention without repeating keys, and on a CPU up to four times faster than
    ``enable_gqa`` (measured, bfloat16).
    """
    rows = queries[group.rows]
    tokens, heads, head_dim = rows.shape
    batch, new = group.batch, tokens // group.batch
    grouped = rows.view(batch, new, kv_heads, heads // kv_heads, head_dim).permute(0, 2, 3, 1, 4)
    return grouped.squeeze(3) if new == 1 else grouped


def attend(
    queries: torch.Tensor, cache: KVCache, layer: int, group: AttentionGroup
) -> torch.Tensor:
    """``query_rows`` of a group, which may lack ``new`` -> [tokens, heads * head_dim]."""
    if group.first_slot is None:
        keys, values = cache.gather(layer, group.pages, group.batch, group.length)
    else:
        keys, values = cache.span(layer, group.first_slot, group.length)
    if queries.dim() == 4:
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=group.mask)
        return mixed.reshape(group.batch, -1)
    batch, kv_heads, shared, new, head_dim = queries.shape
    rows = queries.reshape(batch, kv_heads, shared * new, head_dim)
    mixed = F.scaled_dot_product_attention(rows, keys, values, attn_mask=group.mask)
    mixed = mixed.view(batch, kv_heads, shared, new, head_dim).permute(0, 3, 1, 2, 4)
    return mixed.reshape(batch * new, -1)
