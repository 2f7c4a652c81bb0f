"""One file from a hub: taken up where an earlier try was cut off, and checked."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from antiphon.errors import StartupError
from antiphon.models.hub_listing import HubFile
from antiphon.models.hub_name import HubName

_PARTIAL = ".part"
_CHUNK = 1 << 20


def download(hub: HubName, commit: str, file: HubFile, folder: Path) -> Path:
    """The file below ``folder``, whole and checked; one that is there whole is not fetched again.

    What a cut transfer leaves is kept beside it and gone on with. Raises ``StartupError`` for a
    file that is not what the hub said it would be, and whatever the hub's client raises.
    """
    target = folder / file.name
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + _PARTIAL)
    began = partial.stat().st_size if partial.is_file() else 0
    if began > file.size:
        partial.unlink()
        began = 0
    _get(hub, commit, file, partial, began)
    if began and not _is_whole(partial, file):
        # What an earlier try left may have been of other bytes.
        partial.unlink()
        _get(hub, commit, file, partial, 0)
    if not _is_whole(partial, file):
        partial.unlink()
        raise StartupError(
            f"{file.name} of {hub} came with the wrong size or checksum (expected {file.size} "
            f"bytes, {_kind(file)} {file.digest}); nothing was kept. Try again."
        )
    partial.replace(target)
    return target


def _get(hub: HubName, commit: str, file: HubFile, partial: Path, began: int) -> None:
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    with partial.open("r+b" if began else "wb") as destination:
        destination.seek(began)
        if file.size:
            http_get(
                hf_hub_url(hub.repository, file.name, revision=commit, endpoint=constants.ENDPOINT),
                destination,
                resume_size=began,
                headers=build_hf_headers(),
                expected_size=file.size,
                displayed_filename=file.name,
            )
        destination.truncate()
        destination.flush()
        os.fsync(destination.fileno())


def _is_whole(path: Path, file: HubFile) -> bool:
    if path.stat().st_size != file.size:
        return False
    hasher = hashlib.new(_kind(file), usedforsecurity=False)
    if _kind(file) == "sha1":
        hasher.update(b"blob %d\0" % file.size)
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest() == file.digest


def _kind(file: HubFile) -> str:
    return "sha256" if len(file.digest) == 64 else "sha1"
