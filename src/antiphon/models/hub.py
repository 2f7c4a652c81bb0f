"""Fetch a model from a hub into the cache, and find it there again.

``hub/ORG/NAME/COMMIT/`` holds the files of a folder model, ``hub/ORG/NAME/COMMIT.gguf/`` single
GGUF files; ``refs/`` says which commit a revision was when it was last fetched. A folder appears
under its name only when all its files are in it; until then they gather in a work folder, which
a later fetch of the same commit goes on with.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from urllib.parse import quote

from antiphon.errors import StartupError
from antiphon.models.cache import CACHE_VARIABLE, cache_folder, cannot_write, lock, sync
from antiphon.models.hf_folder import WEIGHTS_INDEX, read_object
from antiphon.models.hub_download import download
from antiphon.models.hub_errors import explained
from antiphon.models.hub_listing import HubFile, Listing, read_listing, shards, without_shards
from antiphon.models.hub_name import HubName

_COMMIT = re.compile(r"[0-9a-f]{40}")


def find(hub: HubName, *, cache: Path | None = None) -> Path | None:
    """The folder or file of a model that was fetched before; None if it was not.

    No network is asked: a branch is where it was when it was last fetched.
    """
    home = _home(hub, cache)
    commit = hub.revision if _COMMIT.fullmatch(hub.revision) else _remembered(home, hub)
    if commit is None:
        return None
    place = _place(home, commit, hub)
    return place if place.exists() else None


def fetch_from_hub(hub: HubName, *, cache: Path | None = None, quiet: bool = False) -> Path:
    """The folder or GGUF file of a model, fetched if this commit of it is not in the cache.

    Only what serving needs is fetched: configuration, vocabulary, template and safetensors, never
    a pickle. Unless ``quiet``, progress goes to standard error. Raises ``StartupError`` with what
    to do about it; the cache then has no half model, and what came is gone on with the next time.
    """
    if _COMMIT.fullmatch(hub.revision) and (found := find(hub, cache=cache)):
        return found
    home = _home(hub, cache)
    try:
        with explained(hub):
            listing = read_listing(hub)
        files = without_shards(hub, listing)
        home.mkdir(parents=True, exist_ok=True)
        with lock(home, quiet=quiet), _progress(hub, quiet=quiet) as tell:
            place = _place(home, listing.commit, hub)
            if not place.exists():
                _sweep(home, listing.commit)
                _bring(hub, listing, files, home, tell)
            _remember(home, hub, listing.commit)
    except OSError as failure:
        raise cannot_write(home, failure) from failure
    return place


def _bring(
    hub: HubName,
    listing: Listing,
    files: list[HubFile],
    home: Path,
    tell: Callable[[HubFile], None],
) -> None:
    """Fetch the files and put the whole of them where it belongs."""
    place = _place(home, listing.commit, hub)
    work = home / f".fetch-{listing.commit}"
    work.mkdir(exist_ok=True)
    with explained(hub):
        _download(hub, listing, files, work, tell)
        if any(file.name == WEIGHTS_INDEX for file in files):
            index = read_object(work / WEIGHTS_INDEX)
            _download(hub, listing, shards(hub, listing, index), work, tell)
    if hub.file is None:
        work.replace(place)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        (work / hub.file).replace(place)
        shutil.rmtree(work)
    sync(place.parent)


def _download(
    hub: HubName,
    listing: Listing,
    files: list[HubFile],
    work: Path,
    tell: Callable[[HubFile], None],
) -> None:
    _require_space(hub, files, work)
    for file in files:
        tell(file)
        download(hub, listing.commit, file, work)


def _require_space(hub: HubName, files: Iterable[HubFile], work: Path) -> None:
    needed = sum(file.size for file in files if not (work / file.name).exists())
    free = shutil.disk_usage(work).free
    if free < needed:
        raise StartupError(
            f"Fetching {hub} needs {needed >> 20} MiB in {work.parent}, and {free >> 20} MiB are "
            f"free. Free some space, or choose another folder with {CACHE_VARIABLE}."
        )


def _sweep(home: Path, commit: str) -> None:
    """What earlier commits left half fetched is of no use any more."""
    for leftover in home.glob(".fetch-*"):
        if leftover.name != f".fetch-{commit}":
            shutil.rmtree(leftover)


def _home(hub: HubName, cache: Path | None) -> Path:
    return (cache or cache_folder()) / "hub" / hub.repository


def _place(home: Path, commit: str, hub: HubName) -> Path:
    return home / commit if hub.file is None else home / f"{commit}.gguf" / hub.file


def _ref(home: Path, hub: HubName) -> Path:
    return home / "refs" / quote(hub.revision, safe="")


def _remembered(home: Path, hub: HubName) -> str | None:
    try:
        commit = _ref(home, hub).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


def _remember(home: Path, hub: HubName, commit: str) -> None:
    ref = _ref(home, hub)
    ref.parent.mkdir(exist_ok=True)
    written = ref.with_name(f".{ref.name}.new")
    written.write_text(commit + "\n", encoding="ascii")
    written.replace(ref)


@contextmanager
def _progress(hub: HubName, *, quiet: bool) -> Iterator[Callable[[HubFile], None]]:
    """Says which file is fetched, beside the client's bars and its words on retries; or nothing."""
    from huggingface_hub import constants
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    def tell(file: HubFile) -> None:
        if not quiet:
            size = f"{file.size >> 20} MiB"
            sys.stderr.write(f"Fetching {file.name} of {hub} ({size}) from {constants.ENDPOINT}\n")

    if not quiet:
        yield tell
        return
    level = logging.get_verbosity()
    logging.set_verbosity(ERROR)
    disable_progress_bars()
    try:
        yield tell
    finally:
        enable_progress_bars()
        logging.set_verbosity(level)
