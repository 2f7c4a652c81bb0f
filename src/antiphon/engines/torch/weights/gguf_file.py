"""GGUF files of Llama, Mistral, Qwen2 and Qwen3 as sources of weights."""

from __future__ import annotations

from pathlib import Path

import torch

from antiphon.engines.torch.weights.fields import Fields
from antiphon.engines.torch.weights.gguf_config import FREQUENCY_FACTORS, architecture, read_config
from antiphon.engines.torch.weights.gguf_names import canonical_name, half_split
from antiphon.engines.torch.weights.gguf_tensors import GgufTensors
from antiphon.engines.torch.weights.layout import check_layout
from antiphon.engines.torch.weights.q4_blocks import HEADERS, split_blocks
from antiphon.engines.torch.weights.source import Q4Blocks
from antiphon.models.gguf_metadata import read_header


class GgufFile:
    """A GGUF file as a source of weights.

    Raises ``StartupError`` for a damaged header, ``EngineStartError`` for what does not suit.
    """

    def __init__(self, path: Path) -> None:
        metadata, tensors = read_header(path)
        fields = Fields(metadata, path.name)
        self._adjacent_pairs = architecture(fields) == "llama"
        self._tensors = GgufTensors(path, tensors)
        self.config = read_config(fields, self._tensors)
        self._stored_names = {
            canonical_name(stored): stored
            for stored in self._tensors.shapes
            if stored != FREQUENCY_FACTORS
        }
        shapes = self._tensors.shapes
        check_layout(self.config, {name: shapes[at] for name, at in self._stored_names.items()})

    def names(self) -> set[str]:
        """All tensors but the frequency factors, which are part of the configuration."""
        return set(self._stored_names)

    def tensor(self, name: str) -> torch.Tensor:
        """Float32, dequantised, half-split."""
        return self._turned(name, torch.from_numpy(self._tensors.floats(self._stored_names[name])))

    def bits(self, name: str) -> int:
        """4 of Q4_0 and Q4_1, 8 of Q8_0; 16 of all others, which are not kept as they are."""
        kind = self._tensors.kind(self._stored_names[name])
        return 4 if kind in HEADERS else 8 if kind == "Q8_0" else 16

    def quantised(self, name: str) -> Q4Blocks | None:
        """The parts of a Q4_0 or Q4_1 tensor, half-split."""
        stored = self._stored_names[name]
        kind = self._tensors.kind(stored)
        if kind not in HEADERS:
            return None
        parts = split_blocks(self._tensors.rows(stored), kind)
        return Q4Blocks(
            codes=self._turned(name, parts.codes),
            scale=self._turned(name, parts.scale),
            minimum=self._turned(name, parts.minimum),
        )

    def _turned(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        if self._adjacent_pairs and ".q_proj." in name:
            return half_split(rows, self.config.heads)
        if self._adjacent_pairs and ".k_proj." in name:
            return half_split(rows, self.config.kv_heads)
        return rows
