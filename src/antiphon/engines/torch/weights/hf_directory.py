"""Folders in the Hugging Face layout: config.json and safetensors, whole or in shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.weights.hf_config import read_config
from antiphon.engines.torch.weights.layout import check_layout
from antiphon.models.hf_folder import WEIGHTS_INDEX, shard_of_tensors, weight_files

BUFFER = ".rotary_emb.inv_freq"
"""Old files hold these; they follow from the configuration."""
DTYPES = ("F64", "F32", "F16", "BF16")


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
        self._file_of = self._find_tensors()
        check_layout(self.config, self._shapes())

    def names(self) -> set[str]:
        """All tensors."""
        return set(self._file_of)

    def tensor(self, name: str) -> torch.Tensor:
        """As stored."""
        try:
            tensor: torch.Tensor = self._file_of[name].get_tensor(name)
        except SafetensorError as failure:
            raise EngineStartError(f"{self._path}: tensor {name}: {failure}") from failure
        return tensor

    def bits(self, name: str) -> int:  # noqa: ARG002  # the protocol
        """16: the folder's types are floating ones."""
        return 16

    def quantised(self, name: str) -> None:
        """Always None: safetensors with packed integers are refused by their configuration."""

    def _find_tensors(self) -> dict[str, Any]:
        """The file of each tensor, which an index must agree with."""
        holders: dict[str, str] = {}
        for shard, file in self._files.items():
            for name in file.keys():  # noqa: SIM118  # not a mapping
                if name in holders:
                    raise EngineStartError(
                        f"{self._path}: tensor {name} is both in {holders[name]} and in {shard}"
                    )
                holders[name] = shard
        self._compare_with_index(holders)
        return {
            name: self._files[shard] for name, shard in holders.items() if not name.endswith(BUFFER)
        }

    def _compare_with_index(self, holders: dict[str, str]) -> None:
        index = shard_of_tensors(self._path)
        for name, shard in index.items():
            if (holder := holders.get(name)) != shard:
                where = "in no shard" if holder is None else f"in {holder}"
                raise EngineStartError(
                    f"{self._path}: {WEIGHTS_INDEX} says that tensor {name} is in {shard}, but it "
                    f"is {where}"
                )
        for name in holders if index else ():
            if name not in index:
                raise EngineStartError(
                    f"{self._path}: {WEIGHTS_INDEX} does not name tensor {name}, which is in "
                    f"{holders[name]}"
                )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        shapes = {}
        for name, file in self._file_of.items():
            stored = file.get_slice(name)
            if (dtype := stored.get_dtype()) not in DTYPES:
                raise EngineStartError(
                    f"{self._path}: tensor {name} has the type {dtype}; supported are "
                    f"{', '.join(DTYPES)}"
                )
            shapes[name] = tuple(stored.get_shape())
        return shapes


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as failure:
        raise EngineStartError(f"{path} is damaged or not safetensors: {failure}") from failure
