"""A Llama-family decoder over a paged KV cache."""

from __future__ import annotations

import attrs
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from antiphon.engines.torch.models.attention import AttentionGroup, attend
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.models.kv_cache import KVCache
from antiphon.engines.torch.models.rope import rope_table, rotate


@attrs.define(eq=False)
class Linear:
    """``x @ weight.T + bias``; weight is [out, in]."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


@attrs.define(eq=False)
class Layer:
    """Weights of one decoder layer. Query, key and value are one matrix, gate and up another."""

    attention_norm: torch.Tensor
    qkv: Linear
    output: Linear
    ffn_norm: torch.Tensor
    gate_up: Linear
    down: Linear
    q_norm: torch.Tensor | None = None
    """[head_dim], of every query head; None where heads are not normed."""
    k_norm: torch.Tensor | None = None


@attrs.define(eq=False)
class DecoderWeights:
    """All tensors of the decoder, on one device and in one type; q and k rows are half-split."""

    embedding: torch.Tensor
    layers: list[Layer]
    norm: torch.Tensor
    head: torch.Tensor
    """[vocab, hidden]; the embedding itself where the two are tied."""


@attrs.define(eq=False)
class StepBatch:
    """The tensors of one step over N tokens."""

    ids: torch.Tensor
    """int64 [N]"""
    positions: torch.Tensor
    """int64 [N]"""
    slots: torch.Tensor
    """int64 [N]: where their keys and values go."""
    fresh: torch.Tensor
    """int64 [P]: pages that the step is the first to write in."""
    groups: list[AttentionGroup]
    """Together they cover all N rows."""
    drawing: torch.Tensor
    """int64 [R]: the rows that draw a token."""


class Decoder:
    """The forward pass. ``context_length`` bounds the positions."""

    def __init__(self, config: DecoderConfig, weights: DecoderWeights, context_length: int) -> None:
        self.config = config
        self.weights = weights
        self._rope = rope_table(config, context_length, weights.embedding.device)

    def __call__(self, batch: StepBatch, cache: KVCache) -> torch.Tensor:
        """Write the step's keys and values; the states of all rows: [N, hidden]."""
        cache.clear(batch.fresh)
        x = F.embedding(batch.ids, self.weights.embedding)
        cos, sin = self._rope[:, batch.positions].unsqueeze(2)
        for index, layer in enumerate(self.weights.layers):
            x = x + self._attention(index, layer, x, cos, sin, batch, cache)
            x = x + self._feed_forward(layer, x)
        return x

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """What comes after each of ``states`` [rows, hidden]: float32 [rows, vocab]."""
        x = self._norm(states, self.weights.norm)
        head = self.weights.head
        if head.device.type == "cpu" and head.dtype is torch.float32:
            # The same product turned round: for 2 to 8 rows it takes half the time on a CPU in
            # float32 (49,152 tokens, measured). In bfloat16 it takes longer.
            return torch.mm(head, x.T).T.contiguous()
        return F.linear(x, head).float()

    def _attention(
        self,
        index: int,
        layer: Layer,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        batch: StepBatch,
        cache: KVCache,
    ) -> torch.Tensor:
        config = self.config
        qkv = layer.qkv(self._norm(x, layer.attention_norm))
        heads = qkv.view(len(x), -1, config.head_dim)
        turned = rotate(self._normed_heads(layer, heads[:, : -config.kv_heads]), cos, sin)
        queries, keys = turned[:, : config.heads], turned[:, config.heads :]
        values = heads[:, -config.kv_heads :]
        cache.write(index, batch.slots, keys.flatten(1), values.flatten(1))
        mixed = [
            attend(queries[group.rows], cache, index, group, config.kv_heads)
            for group in batch.groups
        ]
        return layer.output(mixed[0] if len(mixed) == 1 else torch.cat(mixed))

    def _normed_heads(self, layer: Layer, heads: torch.Tensor) -> torch.Tensor:
        """[tokens, heads + kv_heads, head_dim]: queries, then keys, each normed on its own."""
        if layer.q_norm is None or layer.k_norm is None:
            return heads
        config = self.config
        shape, eps = (config.head_dim,), config.norm_eps
        queries = F.rms_norm(heads[:, : config.heads], shape, layer.q_norm, eps)
        keys = F.rms_norm(heads[:, config.heads :], shape, layer.k_norm, eps)
        return torch.cat((queries, keys), dim=1)

    def _feed_forward(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        gate, up = layer.gate_up(self._norm(x, layer.ffn_norm)).chunk(2, dim=-1)
        return layer.down(F.silu(gate) * up)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (self.config.hidden_size,), weight, self.config.norm_eps)
