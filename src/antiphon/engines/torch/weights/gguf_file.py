"""GGUF files of the architecture ``llama`` (Llama, Mistral, SmolLM2, …).

Source: the GGUF specification. Its converter stores query and key rows for adjacent-pair rotary
embedding (dimension 2i turns with 2i + 1); they are put back to the half-split order here.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import (
    DecoderConfig,
    FrequencyFactors,
    LinearScaling,
    RopeScaling,
)
from antiphon.engines.torch.weights.fields import Fields
from antiphon.engines.torch.weights.q4_blocks import HEADERS, split_blocks
from antiphon.engines.torch.weights.source import Q4Blocks
from antiphon.models.gguf_metadata import read_header

ARCHITECTURE = "llama"
TYPES = {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}
FREQUENCY_FACTORS = "rope_freqs.weight"
MODEL_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class GgufFile:
    """A GGUF file as a source of weights.

    Raises ``StartupError`` for a damaged header, ``EngineStartError`` for what does not suit.
    """

    def __init__(self, path: Path) -> None:
        metadata, tensors = read_header(path)
        self._path = path
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        self._tensors = {tensor.name: tensor for tensor in tensors}
        self._fields = Fields(metadata, path.name)
        self.config = self._config()
        self._stored_names = {
            canonical_name(stored): stored
            for stored in self._tensors
            if stored != FREQUENCY_FACTORS
        }

    def names(self) -> set[str]:
        """All tensors but the frequency factors, which are part of the configuration."""
        return set(self._stored_names)

    def tensor(self, name: str) -> torch.Tensor:
        """Float32, dequantised, half-split."""
        return self._turned(name, torch.from_numpy(self._array(self._stored_names[name])))

    def quantised(self, name: str) -> Q4Blocks | None:
        """The parts of a Q4_0 or Q4_1 tensor, half-split."""
        rows, kind = self._rows(self._stored_names[name])
        if kind not in HEADERS or rows.ndim != 2:
            return None
        parts = split_blocks(rows, kind)
        return Q4Blocks(
            codes=self._turned(name, parts.codes),
            scale=self._turned(name, parts.scale),
            minimum=self._turned(name, parts.minimum),
        )

    def _turned(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        if ".q_proj." in name:
            return half_split(rows, self.config.heads)
        if ".k_proj." in name:
            return half_split(rows, self.config.kv_heads)
        return rows

    def _array(self, stored: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        rows, name = self._rows(stored)
        values = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[name])
        # Float types come as views of the file, which is mapped read-only.
        return np.array(values, dtype=np.float32, copy=None if values.flags.writeable else True)

    def _rows(self, stored: str) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], str]:
        """The bytes of a tensor, row by row, and the name of its type."""
        tensor = self._tensors[stored]
        name = _type_name(tensor.kind)
        if name not in TYPES:
            taken = ", ".join(sorted(TYPES))
            raise EngineStartError(f"tensor {stored} has the type {name}; supported are {taken}")
        kind = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        *outer, width = tensor.shape
        row = width // block * size
        data = self._data[tensor.start :][: math.prod(outer) * row]
        if width % block or len(data) < math.prod(outer) * row:
            raise EngineStartError(f"{self._path} is damaged: tensor {stored} is not whole")
        return data.reshape(*outer, row), name

    def _config(self) -> DecoderConfig:
        fields = self._fields
        if fields.values.get("general.architecture") != ARCHITECTURE:
            raise fields.refuse("general.architecture", repr(ARCHITECTURE))
        for key in ("expert_count", "attention.sliding_window"):
            fields.only(f"llama.{key}", 0)
        hidden, heads = (
            fields.count("llama.embedding_length"),
            fields.count("llama.attention.head_count"),
        )
        head_dim = fields.count("llama.attention.key_length", hidden // heads)
        fields.only("llama.attention.value_length", head_dim)
        fields.only("llama.rope.dimension_count", head_dim)
        if "token_embd.weight" not in self._tensors:
            raise EngineStartError(f"{fields.source}: tensor token_embd.weight is missing")
        return DecoderConfig(
            vocab_size=self._tensors["token_embd.weight"].shape[0],
            hidden_size=hidden,
            layers=fields.count("llama.block_count"),
            heads=heads,
            kv_heads=fields.count("llama.attention.head_count_kv", heads),
            head_dim=head_dim,
            ffn_size=fields.count("llama.feed_forward_length"),
            norm_eps=fields.number("llama.attention.layer_norm_rms_epsilon"),
            rope_theta=fields.number("llama.rope.freq_base", 10_000.0),
            rope_scaling=self._rope_scaling(),
            context_length=fields.count("llama.context_length"),
            tied_embeddings="output.weight" not in self._tensors,
        )

    def _rope_scaling(self) -> RopeScaling | None:
        key = "llama.rope.scaling.type"
        if FREQUENCY_FACTORS in self._tensors:
            self._fields.only(key, "none", "llama3")
            return FrequencyFactors(tuple(self._array(FREQUENCY_FACTORS).tolist()))
        kind = self._fields.values.get(key) or "none"
        if kind == "none":
            return None
        if kind == "linear":
            return LinearScaling(self._fields.number("llama.rope.scaling.factor"))
        raise self._fields.refuse(key, "'none' or 'linear'")


def _type_name(kind: int) -> str:
    try:
        return gguf.GGMLQuantizationType(kind).name
    except ValueError:
        return f"number {kind}"


def canonical_name(stored: str) -> str:
    """``blk.3.attn_q.weight`` -> ``model.layers.3.self_attn.q_proj.weight``.

    Names that are not part of a llama model come back as they are.
    """
    parts = stored.split(".")
    if len(parts) == 2 and parts[0] in MODEL_NAMES:
        return f"{MODEL_NAMES[parts[0]]}.{parts[1]}"
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in LAYER_NAMES:
        return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.{parts[3]}"
    return stored


def half_split(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a q or k matrix (or bias) from adjacent-pair to half-split order."""
    if rows.shape[0] % (2 * heads):
        return rows  # of the wrong shape, which the caller reports
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)
