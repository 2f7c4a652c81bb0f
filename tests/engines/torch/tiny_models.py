"""Random models of a few thousand weights, written as GGUF files and Hugging Face folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import gguf
import numpy as np
from safetensors.numpy import save_file

from antiphon.models.files import ModelFiles

Weights: TypeAlias = dict[str, np.ndarray[Any, np.dtype[np.float32]]]
Q = gguf.GGMLQuantizationType
NAMES = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, 8)
"""Those of the other architectures are among them."""
EOS = 2


@attrs.frozen(kw_only=True)
class Shape:
    """The sizes of a tiny model."""

    vocab: int = 96
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 96
    context: int = 2048
    theta: float = 500.0
    eps: float = 1e-5

    @classmethod
    def of(cls, config: Any) -> Shape:
        """The sizes in a configuration of the ``transformers`` library."""
        head_dim = getattr(config, "head_dim", None)
        return cls(
            vocab=config.vocab_size,
            hidden=config.hidden_size,
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=head_dim or config.hidden_size // config.num_attention_heads,
            ffn=config.intermediate_size,
            context=config.max_position_embeddings,
            theta=config.rope_parameters["rope_theta"],
            eps=config.rms_norm_eps,
        )


def random_weights(
    shape: Shape, *, tied: bool = True, attention_bias: bool = False, mlp_bias: bool = False
) -> Weights:
    """Weights by Hugging Face's names, large enough that every part changes the logits."""
    dice = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> Any:
        return (dice.standard_normal((rows, columns)) * 1.5 / columns**0.5).astype(np.float32)

    def norm() -> Any:
        return dice.uniform(0.5, 1.5, shape.hidden).astype(np.float32)

    weights: Weights = {
        "model.embed_tokens.weight": matrix(shape.vocab, shape.hidden),
        "model.norm.weight": norm(),
    }
    if not tied:
        weights["lm_head.weight"] = matrix(shape.vocab, shape.hidden)
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    for layer in range(shape.layers):
        prefix = f"model.layers.{layer}"
        weights[f"{prefix}.input_layernorm.weight"] = norm()
        weights[f"{prefix}.post_attention_layernorm.weight"] = norm()
        matrices = {
            "self_attn.q_proj": (q, shape.hidden),
            "self_attn.k_proj": (kv, shape.hidden),
            "self_attn.v_proj": (kv, shape.hidden),
            "self_attn.o_proj": (shape.hidden, q),
            "mlp.gate_proj": (shape.ffn, shape.hidden),
            "mlp.up_proj": (shape.ffn, shape.hidden),
            "mlp.down_proj": (shape.hidden, shape.ffn),
        }
        for name, size in matrices.items():
            weights[f"{prefix}.{name}.weight"] = matrix(*size)
            if attention_bias if name.startswith("self_attn") else mlp_bias:
                weights[f"{prefix}.{name}.bias"] = matrix(size[0], 1)[:, 0]
    return weights


def hf_config(shape: Shape, **changes: Any) -> dict[str, Any]:
    """A ``config.json``; a change to None leaves the key out."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.theta,
        "rms_norm_eps": shape.eps,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "eos_token_id": EOS,
    } | changes
    return {key: value for key, value in config.items() if value is not None}


def write_hf(
    path: Path, config: Mapping[str, Any], weights: Weights, *, shards: int = 1
) -> ModelFiles:
    """A folder with safetensors, whole or in shards with an index."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(weights, path / "model.safetensors")
        return ModelFiles(path.name, "hf", path)
    weight_map: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = dict(list(weights.items())[shard::shards])
        save_file(part, path / name)
        weight_map |= dict.fromkeys(part, name)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return ModelFiles(path.name, "hf", path)


def stored_name(name: str) -> str:
    """GGUF's name of a tensor, by the table of its own package."""
    stem, _, ending = name.rpartition(".")
    stored = NAMES.get_name(stem)
    if stored is None:
        raise KeyError(name)
    return f"{stored}.{ending}"


def write_gguf(
    path: Path,
    shape: Shape,
    weights: Weights,
    *,
    quantised: Mapping[str, gguf.GGMLQuantizationType] | None = None,
    fields: Mapping[str, Any] | None = None,
    architecture: str = "llama",
    extra: Weights | None = None,
) -> tuple[ModelFiles, Weights]:
    """A GGUF file of the weights as they are, and what its tensors hold after quantising.

    ``quantised`` is an ending of a tensor's name -> type. ``fields`` are further metadata keys.
    """
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.theta)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_eos_token_id(EOS)
    for key, value in (fields or {}).items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_float32(key, value)
    held = {}
    for name, values in weights.items():
        kinds = [kind for ending, kind in (quantised or {}).items() if name.endswith(ending)]
        kind = kinds[0] if kinds else Q.F32
        data = gguf.quants.quantize(values, kind)
        held[name] = gguf.quants.dequantize(data, kind).reshape(values.shape)
        writer.add_tensor(stored_name(name), data, raw_dtype=kind)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return ModelFiles(path.stem, "gguf", path), held
