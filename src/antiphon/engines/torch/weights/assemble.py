"""Puts the tensors of a source together as the decoder wants them."""

from __future__ import annotations

import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.decoder import DecoderWeights, Layer, Linear
from antiphon.engines.torch.weights.source import WeightSource

EMBEDDING = "model.embed_tokens.weight"
NORM = "model.norm.weight"
HEAD = "lm_head.weight"


def assemble(source: WeightSource, dtype: torch.dtype, device: torch.device) -> DecoderWeights:
    """Read every tensor once, straight into its place.

    Raises ``EngineStartError`` for a tensor that is missing, has another shape than the
    configuration says, or is not part of a Llama decoder.
    """
    return _Assembly(source, dtype, device).weights()


class _Assembly:
    def __init__(self, source: WeightSource, dtype: torch.dtype, device: torch.device) -> None:
        self.source = source
        self.dtype = dtype
        self.device = device
        self.unread = source.names()

    def weights(self) -> DecoderWeights:
        config = self.source.config
        embedding = self.read(EMBEDDING, config.vocab_size, config.hidden_size)
        if config.tied_embeddings:
            self.unread.discard(HEAD)  # some files hold the copy
            head = embedding
        else:
            head = self.read(HEAD, config.vocab_size, config.hidden_size)
        weights = DecoderWeights(
            embedding=embedding,
            layers=[self.layer(f"model.layers.{index}") for index in range(config.layers)],
            norm=self.read(NORM, config.hidden_size),
            head=head,
        )
        if self.unread:
            raise EngineStartError(
                f"tensor {min(self.unread)} is not part of a Llama decoder of {config.layers} "
                f"layers ({len(self.unread)} such tensors)"
            )
        return weights

    def layer(self, prefix: str) -> Layer:
        config = self.source.config
        hidden, ffn = config.hidden_size, config.ffn_size
        q, kv, head = config.q_size, config.kv_size, config.head_dim
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        return Layer(
            attention_norm=self.read(f"{prefix}.input_layernorm.weight", hidden),
            qkv=self.linear(
                {f"{attention}.q_proj": q, f"{attention}.k_proj": kv, f"{attention}.v_proj": kv},
                hidden,
            ),
            output=self.linear({f"{attention}.o_proj": hidden}, q),
            ffn_norm=self.read(f"{prefix}.post_attention_layernorm.weight", hidden),
            gate_up=self.linear({f"{mlp}.gate_proj": ffn, f"{mlp}.up_proj": ffn}, hidden),
            down=self.linear({f"{mlp}.down_proj": hidden}, ffn),
            q_norm=self.read(f"{attention}.q_norm.weight", head) if config.qk_norm else None,
            k_norm=self.read(f"{attention}.k_norm.weight", head) if config.qk_norm else None,
        )

    def linear(self, parts: dict[str, int], width: int) -> Linear:
        """The named matrices (name -> rows) below each other; a bias where the file has one."""
        weight = self.empty(sum(parts.values()), width)
        biased = [name for name in parts if f"{name}.bias" in self.unread]
        bias = self.empty(sum(parts.values())).zero_() if biased else None
        first = 0
        for name, rows in parts.items():
            self.copy(f"{name}.weight", weight[first : first + rows])
            if bias is not None and name in biased:
                self.copy(f"{name}.bias", bias[first : first + rows])
            first += rows
        return Linear(weight, bias)

    def read(self, name: str, *shape: int) -> torch.Tensor:
        tensor = self.empty(*shape)
        self.copy(name, tensor)
        return tensor

    def empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def copy(self, name: str, target: torch.Tensor) -> None:
        """Convert the named tensor into ``target``, whose shape it must have."""
        if name not in self.unread:
            raise EngineStartError(f"tensor {name} is missing")
        tensor = self.source.tensor(name)
        if tensor.shape != target.shape:
            raise EngineStartError(
                f"tensor {name} has shape {list(tensor.shape)}, not {list(target.shape)}"
            )
        target.copy_(tensor)
        self.unread.remove(name)
