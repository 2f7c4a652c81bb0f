"""Folders in the Hugging Face layout: config.json and safetensors, whole or in shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import (
    DecoderConfig,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
)
from antiphon.engines.torch.weights.fields import Fields

ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM")
WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
BUFFER = ".rotary_emb.inv_freq"
"""Old files hold these; they follow from the configuration."""


class HfDirectory:
    """A folder as a source of weights."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.config = read_config(path)
        # The files stay mapped until the source is dropped.
        self._files = {name: _open(path / name) for name in _weight_files(path)}
        self._file_of = {
            name: file
            for file in self._files.values()
            for name in file.keys()  # noqa: SIM118  # not a mapping
            if not name.endswith(BUFFER)
        }

    def names(self) -> set[str]:
        """All tensors."""
        return set(self._file_of)

    def tensor(self, name: str) -> torch.Tensor:
        """As stored."""
        try:
            tensor: torch.Tensor = self._file_of[name].get_tensor(name)
        except SafetensorError as failure:
            raise EngineStartError(f"{self._path}: tensor {name}: {failure}") from failure
        if not tensor.is_floating_point():
            raise EngineStartError(
                f"tensor {name} has the type {tensor.dtype}; only floating types are supported"
            )
        return tensor


def read_config(path: Path) -> DecoderConfig:
    """The decoder that ``config.json`` and ``generation_config.json`` describe."""
    fields = Fields(_read_json(path / "config.json"), "config.json")
    architectures = fields.values.get("architectures")
    if not isinstance(architectures, list) or architectures[:1] not in [[a] for a in ARCHITECTURES]:
        raise fields.refuse("architectures", " or ".join(ARCHITECTURES))
    context_length = fields.count("max_position_embeddings")
    fields.only("hidden_act", "silu")
    fields.only("quantization_config")
    fields.only("partial_rotary_factor", 1.0)
    window = fields.values.get("sliding_window")
    if window is not None and fields.count("sliding_window") < context_length:
        raise fields.refuse("sliding_window", "none")
    heads = fields.count("num_attention_heads")
    generation = path / "generation_config.json"
    eos_ids = fields.ids("eos_token_id")
    if generation.is_file():
        eos_ids |= Fields(_read_json(generation), generation.name).ids("eos_token_id")
    theta, scaling = _rope(fields)
    return DecoderConfig(
        vocab_size=fields.count("vocab_size"),
        hidden_size=fields.count("hidden_size"),
        layers=fields.count("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.count("num_key_value_heads", heads),
        head_dim=fields.count("head_dim", fields.count("hidden_size") // heads),
        ffn_size=fields.count("intermediate_size"),
        norm_eps=fields.number("rms_norm_eps"),
        rope_theta=theta,
        rope_scaling=scaling,
        context_length=context_length,
        tied_embeddings=fields.values.get("tie_word_embeddings") is True,
        eos_ids=eos_ids,
    )


def _rope(fields: Fields) -> tuple[float, RopeScaling | None]:
    """Base and scaling: ``rope_parameters``, or the older ``rope_scaling`` and ``rope_theta``."""
    key = "rope_parameters" if fields.values.get("rope_parameters") else "rope_scaling"
    given = fields.values.get(key) or {}
    if not isinstance(given, dict):
        raise fields.refuse(key, "an object")
    rule = Fields(given, f"{fields.source}: {key}")
    theta = rule.number("rope_theta", fields.number("rope_theta", 10_000.0))
    rule.only("partial_rotary_factor", 1.0)
    name = "rope_type" if "rope_type" in given else "type"
    match given.get(name) or "default":
        case "default":
            return theta, None
        case "linear":
            return theta, LinearScaling(rule.number("factor"))
        case "llama3":
            return theta, Llama3Scaling(
                factor=rule.number("factor"),
                low_freq_factor=rule.number("low_freq_factor"),
                high_freq_factor=rule.number("high_freq_factor"),
                original_context_length=rule.count("original_max_position_embeddings"),
            )
    raise rule.refuse(name, "'default', 'linear' or 'llama3'")


def _weight_files(path: Path) -> list[str]:
    """The names of the safetensors files, all of them there."""
    if (path / INDEX).is_file():
        weight_map = _read_json(path / INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise EngineStartError(f"{INDEX}: weight_map is missing or empty")
        names = sorted(map(str, set(weight_map.values())))
        missing = [name for name in names if not (path / name).is_file()]
        if missing:
            raise EngineStartError(f"{path} lacks {missing[0]}, one of {len(names)} shards")
        return names
    if (path / WHOLE).is_file():
        return [WHOLE]
    if any(next(path.glob(pattern), None) for pattern in PICKLES):
        raise EngineStartError(f"{path} holds pickled weights; only safetensors are loaded")
    raise EngineStartError(f"{path} holds neither {WHOLE} nor {INDEX}")


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as failure:
        raise EngineStartError(f"{path} is damaged or not safetensors: {failure}") from failure


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as failure:
        raise EngineStartError(f"{path}: {failure.strerror or failure}") from failure
    except ValueError as failure:
        raise EngineStartError(f"{path} is not JSON: {failure}") from failure
    if not isinstance(value, dict):
        raise EngineStartError(f"{path} does not hold an object")
    return value
