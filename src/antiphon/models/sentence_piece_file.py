"""What a SentencePiece ``tokenizer.model`` holds, read straight from its protocol buffer.

The source of the format is ``sentencepiece_model.proto`` of the SentencePiece project. Of its
messages only the fields that decide how text is encoded are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import error, unpack_from

import attrs

from antiphon.errors import StartupError

BPE = 2
"""``trainer_spec.model_type`` of byte-pair encoding."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Kind(IntEnum):
    """What a piece is. GGUF's ``tokenizer.ggml.token_type`` has the same numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@attrs.frozen
class Piece:
    """One entry of the vocabulary; the higher its score, the sooner it is merged."""

    text: str
    score: float = 0.0
    kind: int = Kind.NORMAL


@attrs.define
class SentencePieceFile:
    """The fields of one file, with the defaults of the format."""

    pieces: list[Piece] = attrs.field(factory=list, repr=False)
    """In the order of their ids."""
    model_type: int = 1
    byte_fallback: bool = False
    whitespace_as_suffix: bool = False
    bos_id: int = 1
    eos_id: int = 2
    normalizer: str = ""
    """The name of how characters are normalised."""
    charsmap: bytes = attrs.field(default=b"", repr=False)
    """The same, compiled; empty: they are not."""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


_TRAINER = {24: "whitespace_as_suffix", 35: "byte_fallback"}
_TRAINER_NUMBERS = {3: "model_type", 41: "bos_id", 42: "eos_id"}
_NORMALIZER = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}


def read_sentence_piece(path: Path) -> SentencePieceFile:
    """The file's content. Raises ``StartupError`` if it cannot be read or is not such a file."""
    try:
        data = path.read_bytes()
        found = _parse(data)
    except OSError as failure:
        raise StartupError(f"{path} cannot be read: {failure.strerror or failure}.") from failure
    except (error, ValueError, IndexError, TypeError) as failure:
        raise StartupError(
            f"{path} is not a whole SentencePiece model: its protocol buffer is damaged."
        ) from failure
    if not found.pieces:
        raise StartupError(f"{path} is not a SentencePiece model: it has no pieces.")
    return found


def _parse(data: bytes) -> SentencePieceFile:
    found = SentencePieceFile()
    for field, value in _fields(data):
        if field == 1:
            found.pieces.append(_piece(_as_bytes(value)))
        elif field == 2:
            for inner, setting in _fields(_as_bytes(value)):
                if inner in _TRAINER:
                    setattr(found, _TRAINER[inner], bool(setting))
                elif inner in _TRAINER_NUMBERS:
                    setattr(found, _TRAINER_NUMBERS[inner], _signed(setting))
        elif field == 3:
            for inner, setting in _fields(_as_bytes(value)):
                if inner == 1:
                    found.normalizer = _as_bytes(setting).decode()
                elif inner == 2:
                    found.charsmap = _as_bytes(setting)
                elif inner in _NORMALIZER:
                    setattr(found, _NORMALIZER[inner], bool(setting))
    return found


def _piece(data: bytes) -> Piece:
    text, score, kind = "", 0.0, int(Kind.NORMAL)
    for field, value in _fields(data):
        if field == 1:
            text = _as_bytes(value).decode()
        elif field == 2:
            (score,) = unpack_from("<f", _as_bytes(value))
        elif field == 3:
            kind = _signed(value)
    return Piece(text, score, kind)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field; what is not a varint comes as its bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(wire)
        if at + size > len(data):
            raise ValueError(size)
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(shift)


def _as_bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(value)
    return value


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value - (1 << 64) if value >> 63 else value
