"""The decoder that a GGUF header describes.

Source: the GGUF specification's keys of language models. Mistral models go by ``llama``.
"""

from __future__ import annotations

import math

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import (
    DecoderConfig,
    FrequencyFactors,
    LinearScaling,
    RopeScaling,
)
from antiphon.engines.torch.weights.fields import Fields
from antiphon.engines.torch.weights.gguf_names import LAYER_NAMES
from antiphon.engines.torch.weights.gguf_tensors import GgufTensors

ARCHITECTURES = ("llama", "qwen2", "qwen3")
REQUIRED_BIASES = {"qwen2": ("attn_q", "attn_k", "attn_v")}
FREQUENCY_FACTORS = "rope_freqs.weight"
EMBEDDING = "token_embd.weight"


def architecture(fields: Fields) -> str:
    """One of ``ARCHITECTURES``. Raises ``EngineStartError`` for another."""
    name = fields.values.get("general.architecture")
    if name not in ARCHITECTURES:
        raise fields.refuse("general.architecture", " or ".join(map(repr, ARCHITECTURES)))
    return str(name)


def read_config(fields: Fields, tensors: GgufTensors) -> DecoderConfig:
    """From the header's keys, and from which tensors there are: biases have no key of their own.

    Raises ``EngineStartError`` naming key and value for what is missing or not supported.
    """
    name = architecture(fields)
    fields.only("split.count", 0, 1)  # a part of several files
    for key in ("expert_count", "attention.sliding_window_pattern"):
        fields.only(f"{name}.{key}", 0)
    hidden = fields.count(f"{name}.embedding_length")
    heads = fields.count(f"{name}.attention.head_count")
    head_dim = _head_dim(fields, name, hidden, heads)
    context_length = fields.count(f"{name}.context_length")
    shapes = tensors.shapes
    if EMBEDDING not in shapes:
        raise EngineStartError(f"{fields.source}: tensor {EMBEDDING} is missing")
    return DecoderConfig(
        vocab_size=shapes[EMBEDDING][0],
        hidden_size=hidden,
        layers=fields.count(f"{name}.block_count"),
        heads=heads,
        kv_heads=fields.count(f"{name}.attention.head_count_kv", heads),
        head_dim=head_dim,
        ffn_size=fields.count(f"{name}.feed_forward_length"),
        norm_eps=fields.number(f"{name}.attention.layer_norm_rms_epsilon"),
        rope_theta=fields.number(f"{name}.rope.freq_base", 10_000.0),
        rope_scaling=_rope_scaling(fields, name, tensors, head_dim),
        context_length=context_length,
        tied_embeddings="output.weight" not in shapes,
        qk_norm=name == "qwen3",
        sliding_window=_window(fields, name, context_length),
        biases=frozenset(
            canonical.rpartition(".")[2]
            for stored, canonical in LAYER_NAMES.items()
            if f"blk.0.{stored}.bias" in shapes or stored in REQUIRED_BIASES.get(name, ())
        ),
    )


def _head_dim(fields: Fields, name: str, hidden: int, heads: int) -> int:
    key = f"{name}.attention.key_length"
    if fields.values.get(key) is None and hidden % heads:
        raise fields.refuse(f"{name}.attention.head_count", f"a divisor of the width {hidden}")
    head_dim = fields.count(key, hidden // heads)
    fields.only(f"{name}.attention.value_length", head_dim)
    fields.only(f"{name}.rope.dimension_count", head_dim)
    return head_dim


def _window(fields: Fields, name: str, context_length: int) -> int | None:
    key = f"{name}.attention.sliding_window"
    if not fields.values.get(key):  # absent, or 0 for none
        return None
    window = fields.count(key)
    return window if window < context_length else None


def _rope_scaling(
    fields: Fields, name: str, tensors: GgufTensors, head_dim: int
) -> RopeScaling | None:
    key = f"{name}.rope.scaling.type"
    if FREQUENCY_FACTORS in tensors.shapes:
        fields.only(key, "none", "llama3")
        if (shape := tensors.shapes[FREQUENCY_FACTORS]) != (head_dim // 2,):
            raise EngineStartError(
                f"tensor {FREQUENCY_FACTORS} has shape {list(shape)}, not {[head_dim // 2]}"
            )
        factors = tuple(tensors.floats(FREQUENCY_FACTORS).tolist())
        if not all(0 < factor < math.inf for factor in factors):
            raise EngineStartError(
                f"tensor {FREQUENCY_FACTORS} holds numbers that are not positive"
            )
        return FrequencyFactors(factors)
    kind = fields.values.get(key) or "none"
    if kind == "none":
        return None
    if kind == "linear":
        return LinearScaling(fields.number(f"{name}.rope.scaling.factor"))
    raise fields.refuse(key, "'none' or 'linear'")
