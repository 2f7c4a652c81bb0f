"""The bytes of every token: one table id → bytes per model, made when it is loaded.

Two families spell their tokens. Byte-level BPE spells each byte as one of 256 printable characters
(GPT-2, Radford et al. 2019); SentencePiece with byte fallback writes a space as ``▁`` and a byte
that has no piece as ``<0xNN>`` (Kudo and Richardson 2018). A token that was added to the vocabulary
by hand is its own UTF-8 text in both. The third, tekken, has the bytes in its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[int, int]:
    """Character → byte of GPT-2's alphabet: printable Latin-1 is itself, the rest is moved up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = (byte for byte in range(256) if byte not in printable)
    return {byte: byte for byte in printable} | {256 + i: byte for i, byte in enumerate(moved)}


_TO_BYTE = _byte_alphabet()
_NO_BYTE = dict.fromkeys(set(range(256)) - set(_TO_BYTE), 0xFFFF)
_UNDO = _TO_BYTE | _NO_BYTE
_SPELL = {byte: character for character, byte in _TO_BYTE.items()}


def byte_level(tokens: Iterable[str]) -> list[bytes]:
    """The bytes of tokens spelt in GPT-2's byte alphabet.

    A token with a character outside the alphabet was not spelt in it, and is its own text.
    """
    return [_undo_byte_level(token) for token in tokens]


def spell_byte_level(data: bytes) -> str:
    """The spelling of bytes in GPT-2's byte alphabet."""
    return data.decode("latin-1").translate(_SPELL)


def _undo_byte_level(token: str) -> bytes:
    try:
        return token.translate(_UNDO).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode()


def sentence_piece(tokens: Iterable[str], space: str = "▁") -> list[bytes]:
    """The bytes of SentencePiece pieces; ``space`` is the character that stands for a space."""
    return [_undo_sentence_piece(token, space) for token in tokens]


def _undo_sentence_piece(token: str, space: str) -> bytes:
    byte = _BYTE_PIECE.fullmatch(token)
    return bytes.fromhex(byte[1]) if byte else token.replace(space, " ").encode()
