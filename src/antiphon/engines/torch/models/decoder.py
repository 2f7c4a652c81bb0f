"""A Llama-family decoder over a paged KV cache.

At one token a step takes as long as some hundred small operators on top of its matrices, so the
layers are written for few of them: one matrix for query, key and value, rotation in place, one
write of key and value, a norm in one operator.
"""

from __future__ import annotations

import attrs
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from antiphon.engines.torch.models.attention import Attending
from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.models.kv_cache import KVCache, cache_dtype
from antiphon.engines.torch.models.linear import Linear
from antiphon.engines.torch.models.norm import MirroredNorm, mirror
from antiphon.engines.torch.models.rope import RopeTable
from antiphon.engines.torch.models.weights import DecoderWeights, Layer


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
    """int64 [P]: pages that the step is the first to write in and does not fill."""
    groups: list[Attending]
    """Together they cover all N rows."""
    drawing: torch.Tensor
    """int64 [R]: the rows that draw a token."""


class Decoder:
    """The forward pass. ``context_length`` bounds the positions."""

    def __init__(self, config: DecoderConfig, weights: DecoderWeights, context_length: int) -> None:
        self.config = config
        self.weights = weights
        embedding, eps = weights.embedding, config.norm_eps
        self._dtype = embedding.dtype
        self._rope = RopeTable(
            config, context_length, cache_dtype(self._dtype, embedding.device), embedding.device
        )
        self._mirror = mirror(embedding)
        self._norm = MirroredNorm(weights.norm, eps)
        self._norms = [
            (MirroredNorm(layer.attention_norm, eps), MirroredNorm(layer.ffn_norm, eps))
            for layer in weights.layers
        ]

    def __call__(self, batch: StepBatch, cache: KVCache) -> torch.Tensor:
        """Write the step's keys and values; the states of all rows: [N, hidden]."""
        cache.clear(batch.fresh)
        ffn = self.config.ffn_size
        x = F.embedding(batch.ids, self.weights.embedding).unsqueeze(1)
        stream = x * self._mirror  # [N, 2, hidden]: beside its own negative, for the norms
        rows = stream.view(x.shape[0], -1)
        rotation = self._rope.at(batch.positions)
        attending = [
            (group.queries(rotation.queries, self.config.kv_heads), group.attend)
            for group in batch.groups
        ]
        for index, layer in enumerate(self.weights.layers):
            attention_norm, ffn_norm = self._norms[index]
            qkv = layer.qkv(attention_norm(rows))
            if layer.q_norm is not None:
                self._norm_heads(layer, qkv)
            rotation.turn(qkv)
            cache.write(index, batch.slots, rotation.keys_values)
            mixed = [attend(queries, cache, index) for queries, attend in attending]
            made = layer.output((mixed[0] if len(mixed) == 1 else torch.cat(mixed)).to(self._dtype))
            stream.addcmul_(made.unsqueeze(1), self._mirror)
            wide = layer.gate_up(ffn_norm(rows))
            made = F.silu(wide.narrow(1, 0, ffn)).mul_(wide.narrow(1, ffn, ffn))
            stream.addcmul_(layer.down(made).unsqueeze(1), self._mirror)
        return stream.select(1, 0)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """What comes after each of ``states`` [rows, hidden]: float32 [rows, vocab]."""
        x = self._norm(torch.cat((states, -states), dim=1))
        head = self.weights.head
        if isinstance(head, Linear) and x.device.type == "cpu" and x.dtype is torch.float32:
            # The same product turned round: for 2 to 8 rows it takes half the time on a CPU in
            # float32 (49,152 tokens, measured). In bfloat16 it takes longer.
            return torch.mm(head.weight, x.T).T.contiguous()
        return head(x).float()

    def _norm_heads(self, layer: Layer, qkv: torch.Tensor) -> None:
        """Queries and keys of [tokens, (heads + 2 * kv_heads) * head_dim], each where it is."""
        if layer.q_norm is None or layer.k_norm is None:
            return
        config = self.config
        shape, eps = (config.head_dim,), config.norm_eps
        heads = qkv.view(qkv.shape[0], -1, config.head_dim)
        queries = heads.narrow(1, 0, config.heads)
        keys = heads.narrow(1, config.heads, config.kv_heads)
        queries.copy_(F.rms_norm(queries, shape, layer.q_norm, eps))
        keys.copy_(F.rms_norm(keys, shape, layer.k_norm, eps))
