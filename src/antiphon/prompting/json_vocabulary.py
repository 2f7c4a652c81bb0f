"""The vocabulary of a folder in the Hugging Face layout: ``tokenizer.json`` and what belongs to it.

Two families are known: byte-level BPE, and SentencePiece (BPE or Unigram) with byte fallback.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from antiphon.errors import StartupError
from antiphon.prompting import token_bytes
from antiphon.prompting.start_marks import parts
from antiphon.prompting.vocabulary import Vocabulary

_MOST_SKIPPED = 1 << 16
"""Ids that a vocabulary may leave out, beyond as many as it has."""
_BYTE_PIECES = frozenset(f"<0x{byte:02X}>" for byte in range(256))


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary in a ``tokenizer.json``.

    Raises ``StartupError`` for a file that is damaged or a family that is not known.
    """
    try:
        text = path.read_text(encoding="utf-8")
        spec = json.loads(text)
        encoder = tokenizers.Tokenizer.from_str(text)
    except Exception as failure:  # the library raises nothing narrower
        raise StartupError(f"{path} cannot be read: {failure}.") from failure
    encoder.no_truncation()
    encoder.no_padding()
    return Vocabulary(encoder=encoder, token_bytes=_token_bytes(path, spec, encoder))


def _token_bytes(path: Path, spec: Any, encoder: tokenizers.Tokenizer) -> list[bytes]:
    _check_added(path, spec, encoder)
    vocab = encoder.get_vocab(with_added_tokens=True)
    last = max(vocab.values(), default=-1)
    if last > 2 * len(vocab) + _MOST_SKIPPED:
        raise StartupError(f"{path}: model.vocab has {len(vocab)} tokens and ids up to {last}.")
    tokens = [""] * (last + 1)
    for token, index in vocab.items():
        if tokens[index]:
            raise StartupError(
                f"{path}: model.vocab has {tokens[index]!r} and {token!r} at one id, {index}."
            )
        tokens[index] = token
    table = _family(path, spec, tokens)
    for index, added in encoder.get_added_tokens_decoder().items():
        table[index] = added.content.encode()
    return table


def _check_added(path: Path, spec: Any, encoder: tokenizers.Tokenizer) -> None:
    """The library gives an added token whose id is taken another one, and says nothing."""
    for entry in spec.get("added_tokens") or ():
        text, index = entry["content"], entry["id"]
        if encoder.token_to_id(text) != index:
            raise StartupError(
                f"{path}: added_tokens has {text!r} at id {index}, which collides with another "
                "token or leaves ids out."
            )


def _family(path: Path, spec: Any, tokens: list[str]) -> list[bytes]:
    model = spec["model"]
    kind = model.get("type", "BPE")
    decoder = list(parts(spec.get("decoder")))
    names = [part["type"] for part in decoder]
    if kind == "BPE" and "ByteLevel" in names:
        return token_bytes.byte_level(tokens)
    space = _space(decoder)
    if kind in ("BPE", "Unigram") and space and model.get("byte_fallback"):
        if missing := _BYTE_PIECES.difference(tokens):
            raise StartupError(f"{path}: byte_fallback is true and {min(missing)} is missing.")
        return token_bytes.sentence_piece(tokens, space)
    raise StartupError(
        f"{path}: model.type is {kind!r} with decoder {names or None} and byte_fallback "
        f"{bool(model.get('byte_fallback'))}; known here: byte-level BPE, and SentencePiece BPE or "
        "Unigram with byte fallback."
    )


def _space(decoder: Iterable[Mapping[str, Any]]) -> str | None:
    """The character that stands for a space in the pieces."""
    for part in decoder:
        if part["type"] == "Metaspace":
            return str(part["replacement"])
        if part["type"] == "Replace" and part.get("content") == " ":
            return str(part["pattern"]["String"])
    return None
