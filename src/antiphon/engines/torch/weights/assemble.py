"""Puts the tensors of a source together as the decoder wants them."""

from __future__ import annotations

import logging
from typing import Literal, TypeAlias

import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.linear import AnyLinear, Head, Linear
from antiphon.engines.torch.models.weights import DecoderWeights, Layer
from antiphon.engines.torch.weights.layout import EMBEDDING, HEAD
from antiphon.engines.torch.weights.packing import in_groups, pack4, pack8, pack_head, to_blocks
from antiphon.engines.torch.weights.source import Q4Blocks, WeightSource

log = logging.getLogger(__name__)

Form: TypeAlias = Literal["auto", "float", "int8", "int4"]
NORM = "model.norm.weight"


def assemble(
    source: WeightSource, dtype: torch.dtype, device: torch.device, form: Form = "float"
) -> DecoderWeights:
    """Read every tensor once, straight into its place.

    ``form``: how the matrices are held. ``auto`` on a CPU that computes in bfloat16: four bits
    where the file has four, eight where it has eight, and for the head of such a file; everything
    else as it is computed with. ``int8`` and ``int4`` round what the file has in more bits; int4
    keeps the head in eight. Raises ``EngineStartError`` for a form that the device has no kernel
    for, and for tensors that cannot be read.
    """
    return _Assembly(source, dtype, device, resolve_form(form, dtype, device)).weights()


def resolve_form(form: Form, dtype: torch.dtype, device: torch.device) -> Form:
    """``float`` for an ``auto`` that comes to the same. Raises as ``assemble`` does."""
    if form in ("int8", "int4") and device.type != "cpu":
        raise EngineStartError(f"weights {form} need the CPU; on {device} give auto or float")
    if form == "auto" and (device.type != "cpu" or dtype is not torch.bfloat16):
        return "float"
    return form


class _Assembly:
    def __init__(
        self, source: WeightSource, dtype: torch.dtype, device: torch.device, form: Form
    ) -> None:
        self.source = source
        self.dtype = dtype
        self.device = device
        self.form = form
        self.names = source.names()
        self.reduced = False
        """Whether any matrix so far is held in fewer bits."""

    def weights(self) -> DecoderWeights:
        config = self.source.config
        embedding = self.read(EMBEDDING, config.vocab_size, config.hidden_size)
        layers = [self.layer(f"model.layers.{index}") for index in range(config.layers)]
        return DecoderWeights(
            embedding=embedding,
            layers=layers,
            norm=self.read(NORM, config.hidden_size),
            head=self.head(embedding),
        )

    def head(self, embedding: torch.Tensor) -> Head:
        name = EMBEDDING if self.source.config.tied_embeddings else HEAD
        if self.reduced:
            return pack_head(self.source.tensor(name))
        return Linear(embedding if name == EMBEDDING else self.read(HEAD, *embedding.shape))

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

    def linear(self, parts: dict[str, int], width: int) -> AnyLinear:
        """The named matrices (name -> rows) below each other; a bias where the file has one."""
        rows = sum(parts.values())
        exact = [self.source.tensor(f"{name}.weight") for name in parts]
        weight = self.empty(rows, width)
        for piece, one in zip(torch.split(weight, list(parts.values())), exact, strict=True):
            piece.copy_(one)
        bias = self.bias(parts)
        bits = self.bits(parts, rows, width)
        if bits > 8:
            return Linear(weight, bias)
        self.reduced = True
        if bits == 8:
            return pack8(torch.cat([one.float() for one in exact]), weight, bias)
        return pack4(self.blocks(parts, exact), weight, bias)

    def bits(self, parts: dict[str, int], rows: int, width: int) -> int:
        """In how many the matrix of these parts is held; 16: as the model computes."""
        if self.form == "float":
            return 16
        stored = max(self.source.bits(f"{name}.weight") for name in parts)
        bits = {"auto": stored, "int8": 8, "int4": 4}[self.form]
        if bits < 16 and not in_groups(rows, width):
            log.warning(
                "%s: a matrix of %d x %d is not made of groups of 32; it is kept in full",
                ", ".join(parts), rows, width,
            )  # fmt: skip
            return 16
        return bits

    def blocks(self, parts: dict[str, int], exact: list[torch.Tensor]) -> Q4Blocks:
        """The integers of the file where it has them; else those nearest to ``exact``."""
        blocks = [
            self.source.quantised(f"{name}.weight") or to_blocks(one.float())
            for name, one in zip(parts, exact, strict=True)
        ]
        return Q4Blocks(
            codes=torch.cat([one.codes for one in blocks]),
            scale=torch.cat([one.scale for one in blocks]),
            minimum=torch.cat([one.minimum for one in blocks]),
        )

    def bias(self, parts: dict[str, int]) -> torch.Tensor | None:
        """Zeros for the parts that have none; None if no part has one."""
        if not any(f"{name}.bias" in self.names for name in parts):
            return None
        bias = self.empty(sum(parts.values())).zero_()
        for piece, name in zip(torch.split(bias, list(parts.values())), parts, strict=True):
            if f"{name}.bias" in self.names:
                piece.copy_(self.source.tensor(f"{name}.bias"))
        return bias

    def read(self, name: str, *shape: int) -> torch.Tensor:
        return self.empty(*shape).copy_(self.source.tensor(name))

    def empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=self.dtype, device=self.device)
