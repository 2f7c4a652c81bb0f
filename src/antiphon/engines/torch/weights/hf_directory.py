"""Folders in the Hugging Face layout: config.json and safetensors, whole or in shards."""

from __future__ import annotations

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
from antiphon.models.hf_folder import CONFIG, read_object, weight_files

ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM")
BUFFER = ".rotary_emb.inv_freq"
"""Old files hold these; they follow from the configuration."""


class HfDirectory:
    """A folder as a source of weights.

    Raises ``StartupError`` for files that are missing or no JSON, ``EngineStartError`` for what
    does not suit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.config = read_config(path)
        # The files stay mapped until the source is dropped.
        self._files = {name: _open(path / name) for name in weight_files(path)}
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

    def quantised(self, name: str) -> None:
        """Always None: safetensors with packed integers are refused by their configuration."""


def read_config(path: Path) -> DecoderConfig:
    """The decoder that ``config.json`` describes."""
    fields = Fields(read_object(path / CONFIG), CONFIG)
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


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as failure:
        raise EngineStartError(f"{path} is damaged or not safetensors: {failure}") from failure
