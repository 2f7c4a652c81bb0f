"""A decoder to compare with: every position recomputed in float64, one head after the other.

Written for being obviously right: no cache, no batches, no fused matrices, plain loops. Rotary
embedding comes in both forms, each applied to the weights as they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from engines.torch.tiny_models import Shape

Array: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Rope: TypeAlias = Callable[[Array, int, Array], Array]


def half_split(vector: Array, position: int, frequencies: Array) -> Array:
    """Dimension i turns with i + d / 2 (Hugging Face)."""
    half = len(vector) // 2
    turned = vector.copy()
    for i in range(half):
        cos, sin = np.cos(position * frequencies[i]), np.sin(position * frequencies[i])
        turned[i] = vector[i] * cos - vector[i + half] * sin
        turned[i + half] = vector[i + half] * cos + vector[i] * sin
    return turned


def adjacent_pair(vector: Array, position: int, frequencies: Array) -> Array:
    """Dimension 2i turns with 2i + 1 (GGUF's llama)."""
    turned = vector.copy()
    for i in range(len(vector) // 2):
        cos, sin = np.cos(position * frequencies[i]), np.sin(position * frequencies[i])
        turned[2 * i] = vector[2 * i] * cos - vector[2 * i + 1] * sin
        turned[2 * i + 1] = vector[2 * i + 1] * cos + vector[2 * i] * sin
    return turned


def plain_frequencies(shape: Shape) -> Array:
    """theta ** (-2i / d)."""
    return np.array([shape.theta ** (-2 * i / shape.head_dim) for i in range(shape.head_dim // 2)])


def logits(
    weights: Mapping[str, Any],
    shape: Shape,
    ids: Sequence[int],
    rope: Rope,
    frequencies: Array | None = None,
) -> Array:
    """[len(ids), vocab] from weights by Hugging Face's names."""
    w = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    turns = plain_frequencies(shape) if frequencies is None else frequencies
    x = np.stack([w["model.embed_tokens.weight"][token] for token in ids])
    for layer in range(shape.layers):
        x = x + _attention(w, shape, f"model.layers.{layer}", x, rope, turns)
        x = x + _feed_forward(w, shape, f"model.layers.{layer}", x)
    x = _norm(x, w["model.norm.weight"], shape)
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return x @ head.T


def _attention(
    w: Mapping[str, Array], shape: Shape, prefix: str, x: Array, rope: Rope, turns: Array
) -> Array:
    x = _norm(x, w[f"{prefix}.input_layernorm.weight"], shape)
    q, k, v = (_linear(w, f"{prefix}.self_attn.{name}_proj", x) for name in "qkv")
    d, mixed = shape.head_dim, np.zeros((len(x), shape.heads * shape.head_dim))
    for head in range(shape.heads):
        shared = head // (shape.heads // shape.kv_heads)
        keys = [rope(k[s, shared * d : (shared + 1) * d], s, turns) for s in range(len(x))]
        for t in range(len(x)):
            query = rope(q[t, head * d : (head + 1) * d], t, turns)
            scores = np.array([query @ keys[s] / np.sqrt(d) for s in range(t + 1)])
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            for s in range(t + 1):
                value = v[s, shared * d : (shared + 1) * d]
                mixed[t, head * d : (head + 1) * d] += shares[s] * value
    return _linear(w, f"{prefix}.self_attn.o_proj", mixed)


def _feed_forward(w: Mapping[str, Array], shape: Shape, prefix: str, x: Array) -> Array:
    x = _norm(x, w[f"{prefix}.post_attention_layernorm.weight"], shape)
    gate, up = (_linear(w, f"{prefix}.mlp.{name}_proj", x) for name in ("gate", "up"))
    return _linear(w, f"{prefix}.mlp.down_proj", gate / (1 + np.exp(-gate)) * up)


def _linear(w: Mapping[str, Array], name: str, x: Array) -> Array:
    product = x @ w[f"{name}.weight"].T
    return product + w[f"{name}.bias"] if f"{name}.bias" in w else product


def _norm(x: Array, weight: Array, shape: Shape) -> Array:
    scale: Array = np.sqrt((x * x).mean(-1, keepdims=True) + shape.eps)
    return x / scale * weight
