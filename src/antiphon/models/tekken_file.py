"""What Mistral's ``tekken.json`` holds: byte tokens in the order of their ranks, and special ones.

The source of the format is the ``mistral-common`` library: special tokens take the first
``default_num_special_tokens`` ids, the vocabulary the ids after them, as far as
``default_vocab_size`` reaches; what the file holds beyond that is not part of the model.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from antiphon.errors import StartupError
from antiphon.models.hf_folder import read_object

BOS, EOS = "<s>", "</s>"

# Files before version 11 do not list their special tokens: these stand in their place.
_UNLISTED = (
    *("<unk>", BOS, EOS, "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)
_LISTED_FROM = 11
_MOST_SPECIALS = 1 << 16
_SURROGATE = re.compile("[\ud800-\udfff]")


@attrs.frozen
class Tekken:
    """The vocabulary of one file: its ids are the specials' places, then the tokens' after them."""

    specials: tuple[str, ...]
    tokens: tuple[bytes, ...] = attrs.field(repr=False)
    """In the order of their ranks; the first 256 are the bytes."""
    pattern: str
    """The regular expression that cuts a text into words."""


def read_tekken(path: Path) -> Tekken:
    """The file's vocabulary. Raises ``StartupError`` that names what is wrong in it."""
    content = read_object(path)
    config = content.get("config")
    if not isinstance(config, Mapping):
        raise _damaged(path, "config", config, "an object")
    pattern = config.get("pattern")
    if not isinstance(pattern, str):
        raise _damaged(path, "config.pattern", pattern, "a regular expression")
    reserved = _count(path, config, "default_num_special_tokens")
    if reserved > _MOST_SPECIALS:
        key = "config.default_num_special_tokens"
        raise _damaged(path, key, reserved, f"at most {_MOST_SPECIALS}")
    size = _count(path, config, "default_vocab_size")
    specials = _specials(path, content, reserved, config.get("version"))
    tokens = _tokens(path, content.get("vocab"), size - reserved)
    return Tekken(specials, tokens, pattern)


def _count(path: Path, config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if type(value) is not int or value < 0:
        raise _damaged(path, f"config.{key}", value, "a count")
    return value


def _specials(
    path: Path, content: Mapping[str, Any], reserved: int, version: Any
) -> tuple[str, ...]:
    listed = content.get("special_tokens")
    if listed is None:
        number = str(version).removeprefix("v")
        if not number.isdigit() or int(number) >= _LISTED_FROM:
            raise StartupError(
                f"{path}: config.version is {version!r} and special_tokens is missing; only files "
                f"before v{_LISTED_FROM} may leave it out."
            )
        texts = dict(enumerate(_UNLISTED))
    else:
        try:
            texts = {entry["rank"]: entry["token_str"] for entry in listed}
        except (TypeError, KeyError) as failure:
            raise StartupError(
                f"{path}: special_tokens is not a list of objects with rank and token_str."
            ) from failure
        if len(texts) != len(listed):
            raise StartupError(f"{path}: special_tokens has two entries of one rank.")
    for rank, text in texts.items():
        if type(rank) is not int or not 0 <= rank < reserved or not _is_text(text):
            raise StartupError(
                f"{path}: special_tokens has {text!r} at rank {rank!r}; ranks run from 0 to "
                f"{reserved - 1} (config.default_num_special_tokens)."
            )
    named = tuple(texts.get(rank, f"<SPECIAL_{rank}>") for rank in range(reserved))
    if len(set(named)) < reserved:
        twice = Counter(named).most_common(1)[0][0]
        raise StartupError(f"{path}: special_tokens has {twice!r} more than once.")
    return named


def _is_text(text: Any) -> bool:
    """Whether UTF-8 can spell it: JSON can write half a surrogate pair."""
    return isinstance(text, str) and text != "" and _SURROGATE.search(text) is None


def _tokens(path: Path, vocab: Any, size: int) -> tuple[bytes, ...]:
    if not isinstance(vocab, list) or not 256 <= size <= len(vocab):
        found = len(vocab) if isinstance(vocab, list) else 0
        raise StartupError(
            f"{path}: vocab has {found} entries; config.default_vocab_size and "
            f"default_num_special_tokens ask for {size}, and the 256 bytes are the least."
        )
    tokens = []
    for place, entry in enumerate(vocab[:size]):
        try:
            if entry["rank"] != place:
                raise ValueError(f"its rank is {entry['rank']!r}")
            tokens.append(base64.b64decode(entry["token_bytes"], validate=True))
        except (TypeError, KeyError, ValueError, binascii.Error) as failure:
            raise StartupError(f"{path}: vocab[{place}] is damaged: {failure}.") from failure
    if len(set(tokens)) < size or b"" in tokens:
        raise StartupError(f"{path}: vocab has a token twice, or an empty one.")
    if {len(token) for token in tokens[:256]} != {1}:
        raise StartupError(f"{path}: vocab does not begin with the 256 bytes.")
    return tuple(tokens)


def _damaged(path: Path, key: str, value: Any, wanted: str) -> StartupError:
    return StartupError(f"{path}: {key} is {value!r}; it must be {wanted}.")
