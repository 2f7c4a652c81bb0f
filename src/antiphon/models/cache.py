"""The folder where fetched models are kept, and what keeps it whole.

Nothing in it is ever half-written: work is done beside the final place, and the last act is one
atomic rename. A lock lets one process work in a folder at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from antiphon.errors import StartupError, shortened

CACHE_VARIABLE = "ANTIPHON_CACHE"

_LOCK_NAME = ".lock"


def cache_folder() -> Path:
    """``$ANTIPHON_CACHE``, else the user's cache folder for this program.

    Raises ``StartupError`` if that is the folder of a user who is not there.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if not chosen:
        return Path(platformdirs.user_cache_dir("antiphon"))
    try:
        return Path(chosen).expanduser()
    except RuntimeError as failure:  # no such user
        raise StartupError(f"{CACHE_VARIABLE} is {shortened(chosen)!r}: {failure}") from failure


def sha256(path: Path) -> str:
    """The file's sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def lock(folder: Path, *, quiet: bool) -> Iterator[None]:
    """Hold the folder for this process; the system lets go of it when the process dies."""
    with (folder / _LOCK_NAME).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not quiet:
                sys.stderr.write("Another process is fetching into this cache; waiting for it.\n")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sync(folder: Path) -> None:
    """Make a rename into the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(folder: Path, failure: OSError) -> StartupError:
    """What to say when the system refuses to write into the cache: a full disk, no permission."""
    reason = failure.strerror or str(failure)
    return StartupError(
        f"The model cannot be put into {folder}: {reason}. Mend that, or choose another folder "
        f"with {CACHE_VARIABLE}."
    )
