"""The parts of a body: columns of numbers, strings and JSON, each padded with zeros to 8 bytes."""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

from antiphon.engines.codec.envelope import CodecError

Ints: TypeAlias = Literal["B", "H", "I", "i"]
Floats: TypeAlias = Literal["f", "d"]

SIZES = {"B": 1, "H": 2, "I": 4, "i": 4, "f": 4, "d": 8}
SWAPPED = sys.byteorder == "big"
ZEROS = tuple(bytes(count) for count in range(8))


class Writer:
    """Collects the parts of one body."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []

    def raw(self, data: bytes | memoryview) -> None:
        """Bytes of a length that the reader knows."""
        self._parts.append(data)
        if gap := -len(data) % 8:
            self._parts.append(ZEROS[gap])

    def column(self, numbers: array[int] | array[float]) -> None:
        """The numbers as they are in memory."""
        if SWAPPED:
            numbers = numbers[:]
            numbers.byteswap()
        self.raw(memoryview(numbers).cast("B") if numbers else b"")

    def numbers(self, code: Ints | Floats, numbers: Sequence[int] | Sequence[float]) -> None:
        """The numbers in the given form. Raises ``OverflowError`` for one that it cannot hold."""
        self.column(array(code, numbers))

    def blobs(self, items: Sequence[bytes]) -> None:
        """Strings of bytes: all lengths, then all of them in a row."""
        self.numbers("I", [len(item) for item in items])
        self.raw(b"".join(items))

    def json(self, value: object) -> None:
        """A value of JSON."""
        self.blobs([json.dumps(value).encode()])

    def body(self) -> bytes:
        """All parts in a row."""
        return b"".join(self._parts)


class Reader:
    """Takes the parts of a body in the order in which they were written.

    Every method raises ``CodecError`` for what is not there.
    """

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0

    def raw(self, count: int) -> memoryview:
        """So many bytes."""
        end = self._at + count
        after = end + -count % 8
        if after > len(self._body):
            raise CodecError(f"a body of {len(self._body)} bytes ends before its parts do")
        data, gap = self._body[self._at : end], self._body[end:after]
        if gap and any(gap):
            raise CodecError("what fills a part up is not zero")
        self._at = after
        return data

    def struct(self, form: struct.Struct) -> tuple[Any, ...]:
        """One record."""
        return form.unpack(self.raw(form.size))

    @overload
    def column(self, code: Ints, count: int) -> array[int]: ...
    @overload
    def column(self, code: Floats, count: int) -> array[float]: ...
    def column(self, code: Ints | Floats, count: int) -> array[int] | array[float]:
        """So many numbers; a copy, since the bytes that have come are written over."""
        numbers: array[int] | array[float] = array(code)
        numbers.frombytes(self.raw(count * SIZES[code]))
        if SWAPPED:
            numbers.byteswap()
        return numbers

    def blobs(self, count: int) -> list[bytes]:
        """So many strings of bytes."""
        lengths = self.column("I", count)
        data, at = self.raw(sum(lengths)), 0
        found = []
        for length in lengths:
            found.append(bytes(data[at : at + length]))
            at += length
        return found

    def json(self) -> Any:
        """A value of JSON."""
        (text,) = self.blobs(1)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as failure:
            raise CodecError(f"a header is no JSON: {failure}") from None

    def end(self) -> None:
        """There is nothing more."""
        if self._at != len(self._body):
            raise CodecError(f"{len(self._body) - self._at} bytes follow the last part")


def to_text(data: bytes) -> str:
    """The string of ``of_text``. Raises ``CodecError``."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as failure:
        raise CodecError(f"a string is not UTF-8: {failure}") from None


def of_text(text: str) -> bytes:
    """The string in UTF-8; halves of surrogate pairs, which Python allows, are kept."""
    return text.encode("utf-8", "surrogatepass")
