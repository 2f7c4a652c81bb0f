"""The header of a GGUF file, its metadata and its list of tensors, read straight from its bytes.

Source: the GGUF specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
The ``gguf`` package reads the same fields, but makes several arrays for every string: seconds for
a vocabulary of 49,000 tokens and as many merges, where this takes a tenth of one.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct, error, unpack_from
from typing import TypeAlias, TypeVar

import attrs

from antiphon.errors import StartupError
from antiphon.models.regular import require_regular

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4

Scalar: TypeAlias = int | float | bool | str
Value: TypeAlias = Scalar | Sequence[Scalar]
Metadata: TypeAlias = dict[str, Value]
T = TypeVar("T")

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_read_length = Struct("<Q").unpack_from


@attrs.frozen
class TensorInfo:
    """Where a tensor lies in the file."""

    name: str
    shape: tuple[int, ...]
    """Outermost dimension first, as numpy has it and the file does not."""
    kind: int
    """The number of its ``ggml_type``."""
    start: int
    """Of its data, in bytes from the beginning of the file."""


def read_metadata(path: Path) -> Metadata:
    """Every metadata key of the file; arrays are lists or tuples.

    Raises ``StartupError`` if the file cannot be read or is not a whole GGUF header.
    """
    return _read(path, lambda reader: reader.metadata(path))


def read_header(path: Path) -> tuple[Metadata, list[TensorInfo]]:
    """The metadata, and all tensors in the order of the file. Raises as ``read_metadata`` does."""

    def parts(reader: _Reader) -> tuple[Metadata, list[TensorInfo]]:
        metadata = reader.metadata(path)
        return metadata, reader.tensors(metadata.get("general.alignment", DEFAULT_ALIGNMENT))

    return _read(path, parts)


def _read(path: Path, parts: Callable[[_Reader], T]) -> T:
    require_regular(path)
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return parts(_Reader(data))
    except OSError as failure:
        raise StartupError(f"{path} cannot be read: {failure.strerror or failure}.") from failure
    except (error, ValueError, LookupError, OverflowError, MemoryError) as failure:
        raise StartupError(f"{path} is not a whole GGUF file: its header is damaged.") from failure


class _Reader:
    """A cursor over the header."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0
        self._tensor_count = 0

    def metadata(self, path: Path) -> Metadata:
        if self._data[:4] != MAGIC:
            raise StartupError(f"{path} is not a GGUF file: it does not start with 'GGUF'.")
        version, self._tensor_count, count = unpack_from("<IQQ", self._data, 4)
        if version not in VERSIONS:
            if not version % 2**16:
                raise StartupError(f"{path} is a big-endian GGUF file; only little-endian is read.")
            known = " and ".join(map(str, VERSIONS))
            raise StartupError(f"{path} is GGUF version {version}; versions {known} are read.")
        self._at = 24
        return {self._string(): self._value(self._scalar("I")) for _ in range(count)}

    def tensors(self, alignment: Value) -> list[TensorInfo]:
        """To be called after ``metadata``, which they follow."""
        if not isinstance(alignment, int) or alignment <= 0:
            raise ValueError(alignment)
        found: dict[str, TensorInfo] = {}
        for _ in range(self._tensor_count):
            info = self._tensor()
            if info.name in found:
                raise ValueError(info.name)
            found[info.name] = info
        data = -(-self._at // alignment) * alignment
        return [attrs.evolve(info, start=data + info.start) for info in found.values()]

    def _tensor(self) -> TensorInfo:
        """Its start is still counted from where the data begin."""
        name, dimensions = self._string(), int(self._scalar("I"))
        if not 0 < dimensions <= MAX_DIMENSIONS:
            raise ValueError(dimensions)
        shape = [int(self._scalar("Q")) for _ in range(dimensions)]
        return TensorInfo(
            name, tuple(reversed(shape)), int(self._scalar("I")), int(self._scalar("Q"))
        )

    def _value(self, kind: int | float | bool) -> Value:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        return self._scalar(_SCALARS[int(kind)])

    def _array(self) -> Sequence[Scalar]:
        kind, length = unpack_from("<IQ", self._data, self._at)
        self._at += 12
        if length > len(self._data):
            raise ValueError(length)
        if kind == _STRING:
            return [self._string() for _ in range(length)]
        items = Struct(f"<{length}{_SCALARS[kind]}")
        values = items.unpack_from(self._data, self._at)
        self._at += items.size
        return values

    def _scalar(self, code: str) -> int | float | bool:
        item = Struct("<" + code)
        (value,) = item.unpack_from(self._data, self._at)
        self._at += item.size
        number: int | float | bool = value
        return number

    def _string(self) -> str:
        data = self._data
        start = self._at + 8
        (length,) = _read_length(data, self._at)
        self._at = end = start + length
        if end > len(data):
            raise ValueError(length)
        return data[start:end].decode()
