"""The tensors of a GGUF file as it holds them, read one by one from the mapped file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import numpy as np

from antiphon.engines.port import EngineStartError
from antiphon.models.gguf_metadata import TensorInfo

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
Rows: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]


class GgufTensors:
    """The tensors of ``path``, by their stored names.

    Raises ``EngineStartError`` for types that are not read, and for tensors that do not lie within
    the file or lie over each other.
    """

    def __init__(self, path: Path, tensors: Iterable[TensorInfo]) -> None:
        self._path = path
        self._tensors = {tensor.name: tensor for tensor in tensors}
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        end, before = 0, ""
        for tensor in sorted(self._tensors.values(), key=lambda one: one.start):
            if tensor.start < end:
                raise self._damaged(f"tensor {tensor.name} lies over {before}")
            end, before = tensor.start + self._size(tensor), tensor.name
            if end > len(self._data):
                raise self._damaged(f"tensor {tensor.name} is not whole")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Outermost dimension first."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def kind(self, name: str) -> str:
        """The name of the tensor's type, one of ``TYPES``."""
        return _type_name(self._tensors[name])

    def rows(self, name: str) -> Rows:
        """The bytes of a tensor: its shape, but bytes in the last dimension. A view of the file."""
        tensor = self._tensors[name]
        data = self._data[tensor.start :][: self._size(tensor)]
        return data.reshape(*tensor.shape[:-1], -1)

    def floats(self, name: str) -> Floats:
        """The numbers that a tensor stands for, in memory of their own."""
        kind = gguf.GGMLQuantizationType[self.kind(name)]
        values = gguf.quants.dequantize(self.rows(name), kind)
        # Float types come as views of the file, which is mapped read-only.
        return np.array(values, dtype=np.float32, copy=None if values.flags.writeable else True)

    def _size(self, tensor: TensorInfo) -> int:
        """Bytes."""
        kind = _type_name(tensor)
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        *outer, width = tensor.shape
        if width % block:
            raise self._damaged(
                f"tensor {tensor.name} has rows of {width}, and a block of {kind} is {block}"
            )
        return math.prod(outer) * (width // block) * size

    def _damaged(self, what: str) -> EngineStartError:
        return EngineStartError(f"{self._path} is damaged: {what}")


def _type_name(tensor: TensorInfo) -> str:
    try:
        name = gguf.GGMLQuantizationType(tensor.kind).name
    except ValueError:
        name = f"number {tensor.kind}"
    if name not in TYPES:
        raise EngineStartError(
            f"tensor {tensor.name} has the type {name}; supported are {', '.join(TYPES)}"
        )
    return name
