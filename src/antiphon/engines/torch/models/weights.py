"""The tensors of a decoder, as a tree and as a flat dictionary."""

from __future__ import annotations

from typing import Any

import attrs
import torch

from antiphon.engines.torch.models.linear import (
    AnyLinear,
    Head,
    Int4Linear,
    Int8Head,
    Int8Linear,
    Linear,
)

KINDS = {kind.kind: kind for kind in (Linear, Int4Linear, Int8Linear, Int8Head)}


@attrs.define(eq=False)
class Layer:
    """Weights of one decoder layer. Query, key and value are one matrix, gate and up another."""

    attention_norm: torch.Tensor
    qkv: AnyLinear
    output: AnyLinear
    ffn_norm: torch.Tensor
    gate_up: AnyLinear
    down: AnyLinear
    q_norm: torch.Tensor | None = None
    """[head_dim], of every query head; None where heads are not normed."""
    k_norm: torch.Tensor | None = None


@attrs.define(eq=False)
class DecoderWeights:
    """All tensors of the decoder, on one device; q and k rows are half-split."""

    embedding: torch.Tensor
    """[vocab, hidden], in the type that the model computes in."""
    layers: list[Layer]
    norm: torch.Tensor
    head: Head
    """[vocab, hidden]; a ``Linear`` of the embedding itself where the two are tied."""


def flatten(weights: DecoderWeights) -> dict[str, torch.Tensor]:
    """Every tensor once, by a name such as ``layers.3.qkv/int4.packed``.

    Packed codes are in the order of this machine: ``linear.packing`` belongs to whatever key the
    tensors are kept under.
    """
    flat = {"embedding": weights.embedding, "norm": weights.norm}
    if not _is_tied(weights):
        flat |= _linear("head", weights.head)
    for index, layer in enumerate(weights.layers):
        for field in attrs.fields(Layer):
            value, name = getattr(layer, field.name), f"layers.{index}.{field.name}"
            if isinstance(value, torch.Tensor):
                flat[name] = value
            elif value is not None:
                flat |= _linear(name, value)
    return flat


def rebuild(flat: dict[str, torch.Tensor]) -> DecoderWeights:
    """The tree that ``flatten`` took apart. Raises ``KeyError`` if one of its names is missing."""
    parts: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in flat.items():
        place, _, field_name = name.partition("/")
        parts.setdefault(place, {})[field_name] = tensor
    layers = list[Layer]()
    while f"layers.{len(layers)}.qkv" in parts:
        fields: dict[str, Any] = {}
        for field in attrs.fields(Layer):
            part = parts.get(f"layers.{len(layers)}.{field.name}")
            if part is not None:
                fields[field.name] = part[""] if "" in part else _rebuilt(part)
        layers.append(Layer(**fields))
    embedding = flat["embedding"]
    head: Any = _rebuilt(parts["head"]) if "head" in parts else Linear(embedding)
    return DecoderWeights(embedding, layers, flat["norm"], head)


def _is_tied(weights: DecoderWeights) -> bool:
    return isinstance(weights.head, Linear) and weights.head.weight is weights.embedding


def _linear(name: str, linear: AnyLinear | Head) -> dict[str, torch.Tensor]:
    fields = {field.name: getattr(linear, field.name) for field in attrs.fields(type(linear))}
    return {
        f"{name}/{linear.kind}.{key}": value
        for key, value in fields.items()
        if value is not None and not key.startswith("_")
    }


def _rebuilt(part: dict[str, torch.Tensor]) -> AnyLinear | Head:
    """From ``kind.field`` -> tensor."""
    kind = next(iter(part)).partition(".")[0]
    return KINDS[kind](**{name.partition(".")[2]: tensor for name, tensor in part.items()})
