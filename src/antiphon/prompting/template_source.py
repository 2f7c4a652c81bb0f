"""Where a model keeps its chat template: GGUF metadata, ``chat_template.jinja``, tokenizer config.

The source of the layout is the ``transformers`` library, which writes and reads these files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.models.gguf_metadata import read_metadata
from antiphon.models.hf_folder import TOKENIZER_CONFIG, read_optional_object, special_text
from antiphon.models.regular import require_regular

_NAMED = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)
_GGUF_NAMES = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}


class TemplateSource(NamedTuple):
    """A template's text, None if the model has none, and the model's variables for it."""

    text: str | None
    variables: Mapping[str, str]


def read_source(files: ModelFiles) -> TemplateSource:
    """The chat template of a model. Raises ``StartupError`` for files that cannot be read."""
    text, variables = (_from_gguf if files.kind == "gguf" else _from_folder)(files.path)
    # A model without a BOS still has templates that write one: it is then nothing.
    return TemplateSource(text, {"bos_token": "", "eos_token": "", **variables})


def _from_gguf(path: Path) -> tuple[str | None, dict[str, str]]:
    metadata = read_metadata(path)
    source = metadata.get("tokenizer.chat_template")
    tokens = metadata.get("tokenizer.ggml.tokens")
    variables: dict[str, str] = {}
    if isinstance(tokens, list):
        for name, key in _GGUF_NAMES.items():
            token = metadata.get("tokenizer.ggml." + key)
            if isinstance(token, int) and 0 <= token < len(tokens):
                variables[name] = str(tokens[token])
    return (source if isinstance(source, str) else None), variables


def _from_folder(folder: Path) -> tuple[str | None, dict[str, str]]:
    config = read_optional_object(folder / TOKENIZER_CONFIG)
    variables = {name: text for name in _NAMED if (text := special_text(config, name)) is not None}
    require_regular(folder / "chat_template.jinja")
    try:
        return (folder / "chat_template.jinja").read_text(encoding="utf-8"), variables
    except FileNotFoundError:
        return _from_config(folder, config), variables
    except (OSError, ValueError) as failure:
        raise StartupError(f"{folder}/chat_template.jinja cannot be read: {failure}.") from failure


def _from_config(folder: Path, config: Mapping[str, Any]) -> str | None:
    """The template in the tokenizer config: a string, or a list of named ones."""
    value = config.get("chat_template")
    if value is None or isinstance(value, str):
        return value
    try:
        named = {str(entry["name"]): str(entry["template"]) for entry in value}
    except (TypeError, KeyError) as failure:
        raise StartupError(
            f"{folder / TOKENIZER_CONFIG}: chat_template is neither a text nor a list of "
            "objects with name and template."
        ) from failure
    return named.get("default") or next(iter(named.values()), None)
