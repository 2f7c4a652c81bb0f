"""What a folder in the Hugging Face layout holds: its files' names and the objects in them.

The source of the layout is the ``transformers`` library, which writes and reads these files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon.errors import StartupError, shortened
from antiphon.models.regular import require_regular

CONFIG = "config.json"
GENERATION_CONFIG = "generation_config.json"
TOKENIZER = "tokenizer.json"
TEKKEN = "tekken.json"
"""Mistral's own form of a vocabulary."""
SENTENCE_PIECE = "tokenizer.model"
"""A vocabulary as SentencePiece writes it."""
TOKENIZER_CONFIG = "tokenizer_config.json"
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
LONGEST_FILE_NAME = 255
"""Bytes of a file's name, as file systems have it."""
PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl"})
"""Suffixes of files that run code when they are loaded, and so are not."""


def read_object(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file. Raises ``StartupError`` if there is none."""
    require_regular(path)
    try:
        value = json.loads(path.read_bytes())
    except OSError as failure:
        raise StartupError(f"{path} cannot be read: {failure.strerror or failure}.") from failure
    except (ValueError, RecursionError) as failure:
        raise StartupError(f"{path} is not JSON: {failure}.") from failure
    if not isinstance(value, dict):
        raise StartupError(f"{path} does not hold a JSON object.")
    return value


def read_optional_object(path: Path) -> Mapping[str, Any]:
    """As ``read_object``, but empty if there is no such file."""
    return read_object(path) if path.exists() else {}


def special_text(config: Mapping[str, Any], name: str) -> str | None:
    """The text of a named token in ``tokenizer_config.json``, written as a string or an object."""
    value = config.get(name)
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def weight_files(folder: Path) -> list[str]:
    """The names of the folder's safetensors files, all of them there; raises ``StartupError``."""
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    if (folder / WEIGHTS_INDEX).is_file():
        return _shards(folder)
    if any(file.suffix.lower() in PICKLED for file in folder.iterdir()):
        raise StartupError(
            f"{folder} has its weights as pickles only, and loading one runs whatever code it "
            "holds; convert them to safetensors first."
        )
    raise StartupError(f"{folder} has neither {WEIGHTS} nor {WEIGHTS_INDEX}.")


def shard_of_tensors(folder: Path) -> Mapping[str, str]:
    """Tensor -> file, as the folder's index has it; empty where the weights are one file.

    Raises ``StartupError`` for an index that is damaged or names files outside the folder.
    """
    if (folder / WEIGHTS).is_file():
        return {}
    path = folder / WEIGHTS_INDEX
    weight_map = read_object(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise StartupError(f"{path}: weight_map is missing or empty.")
    for tensor, name in weight_map.items():
        if not _is_file_name(name):
            raise StartupError(
                f"{path}: weight_map has {shortened(repr(name))} for {shortened(tensor)}; give a "
                "file's name."
            )
    return weight_map


def _is_file_name(name: Any) -> bool:
    if not isinstance(name, str) or not name or not name.isprintable():
        return False
    if name == ".." or Path(name).name != name:
        return False
    return len(name.encode()) <= LONGEST_FILE_NAME


def _shards(folder: Path) -> list[str]:
    names = sorted(set(shard_of_tensors(folder).values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise StartupError(f"{folder} lacks {len(missing)} of its shards, the first: {missing[0]}.")
    return names
