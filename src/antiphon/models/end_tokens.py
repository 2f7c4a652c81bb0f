"""The ids that end a model's output, from every place where its files name one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.gguf_metadata import read_metadata
from antiphon.models.hf_folder import (
    CONFIG,
    GENERATION_CONFIG,
    TOKENIZER,
    TOKENIZER_CONFIG,
    read_object,
    read_optional_object,
    special_text,
)

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
    text = special_text(read_optional_object(folder / TOKENIZER_CONFIG), "eos_token")
    if text is None:
        return frozenset()
    tokenizer = read_object(folder / TOKENIZER)
    for added in tokenizer.get("added_tokens") or ():
        if added["content"] == text:
            return _ids(f"{folder / TOKENIZER}: {text!r}", added["id"])
    vocab = (tokenizer.get("model") or {}).get("vocab")
    # Unigram lists (piece, score) in the order of the ids, the others map a piece to its id.
    ids = vocab if isinstance(vocab, dict) else {p: at for at, (p, _) in enumerate(vocab or ())}
    if text not in ids:
        raise StartupError(
            f"{folder / TOKENIZER_CONFIG}: eos_token is {text!r}, which {TOKENIZER} does not have."
        )
    return _ids(f"{folder / TOKENIZER}: {text!r}", ids[text])
