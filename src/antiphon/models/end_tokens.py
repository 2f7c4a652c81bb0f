"""The ids that end a model's output, from every place where its files name one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.gguf_metadata import read_metadata
from antiphon.models.hf_folder import (
    CONFIG,
    GENERATION_CONFIG,
    SENTENCE_PIECE,
    TEKKEN,
    TOKENIZER,
    TOKENIZER_CONFIG,
    read_object,
    read_optional_object,
    special_text,
)
from antiphon.models.sentence_piece_file import read_sentence_piece
from antiphon.models.tekken_file import EOS, read_tekken

_GGUF_KEYS = tuple(f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))


def read_end_ids(files: ModelFiles) -> frozenset[int]:
    """The union of all that the files name: a chat model may end a turn by another id than a text.

    GGUF: the ids of eos, eot (end of turn) and eom (end of message). Folder: ``eos_token_id`` of
    ``config.json`` and of ``generation_config.json``, and the ``eos_token`` of the tokenizer.
    Raises ``StartupError`` for one that is no id or that the tokenizer does not know.
    """
    if files.kind == "gguf":
        metadata = read_metadata(files.path)
        named = [(f"{files.path}: {key}", metadata.get(key)) for key in _GGUF_KEYS]
        return frozenset().union(*(_ids(source, value) for source, value in named))
    folder = files.path
    ids = _ids_in_tokenizer(folder)
    for name in (CONFIG, GENERATION_CONFIG):
        value = read_optional_object(folder / name).get("eos_token_id")
        ids |= _ids(f"{folder / name}: eos_token_id", value)
    return ids


def _ids(source: str, value: Any) -> frozenset[int]:
    """One id, several, or none where the value is absent or null."""
    listed = value if isinstance(value, list | tuple) else () if value is None else (value,)
    if not all(type(one) is int and one >= 0 for one in listed):
        raise StartupError(f"{source} is {value!r}; it must be a token id or a list of them.")
    return frozenset(listed)


def _ids_in_tokenizer(folder: Path) -> frozenset[int]:
    """Of the tokenizer that ``load_tokenizer`` takes: the same files in the same order."""
    text = special_text(read_optional_object(folder / TOKENIZER_CONFIG), "eos_token")
    tekken, pieces = folder / TEKKEN, folder / SENTENCE_PIECE
    if (folder / TOKENIZER).exists() or not (tekken.exists() or pieces.exists()):
        return frozenset() if text is None else _ids_in_json(folder, text)
    if tekken.exists():
        return _place(folder, TEKKEN, text or EOS, read_tekken(tekken).specials)
    vocabulary = read_sentence_piece(pieces)
    if text is None:
        return frozenset({vocabulary.eos_id} - {-1})
    return _place(folder, SENTENCE_PIECE, text, [piece.text for piece in vocabulary.pieces])


def _place(folder: Path, name: str, text: str, texts: Sequence[str]) -> frozenset[int]:
    """The id of ``text``, which is its place."""
    if text not in texts:
        raise StartupError(
            f"{folder / TOKENIZER_CONFIG}: eos_token is {text!r}, which {name} does not have."
        )
    return frozenset({texts.index(text)})


def _ids_in_json(folder: Path, text: str) -> frozenset[int]:
    tokenizer = read_object(folder / TOKENIZER)
    try:
        added = {one["content"]: one["id"] for one in tokenizer.get("added_tokens") or ()}
        vocab = (tokenizer.get("model") or {}).get("vocab") or {}
        # Unigram lists (piece, score) in the order of the ids, the others map a piece to its id.
        ids = vocab if isinstance(vocab, dict) else {p: at for at, (p, _) in enumerate(vocab)}
    except (AttributeError, KeyError, TypeError, ValueError) as failure:
        raise StartupError(
            f"{folder / TOKENIZER} is damaged: its tokens are not what a tokenizer.json has."
        ) from failure
    if text not in added and text not in ids:
        raise StartupError(
            f"{folder / TOKENIZER_CONFIG}: eos_token is {text!r}, which {TOKENIZER} does not have."
        )
    return _ids(f"{folder / TOKENIZER}: {text!r}", added.get(text, ids.get(text)))
