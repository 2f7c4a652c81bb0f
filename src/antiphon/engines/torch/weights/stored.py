"""A folder of tensors that were made with some effort and can be made again at any time.

Every set is one safetensors file, put in place by a rename and checked when it is read. Whatever
goes wrong with the folder costs the effort, and a line in the log.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

log = logging.getLogger(__name__)

KEPT = 4
"""Sets in a folder."""
KEPT_BYTES = 8 << 30
"""Of a folder, unless a single set is larger."""
SPARE_BYTES = 256 << 20
"""That a written set must leave free on the disk."""
ABANDONED_S = 3_600
"""Age of a half-written file that nobody writes any more."""
_CHECKSUM = "crc32"
_PART = ".part"


class StoredTensors:
    """Named sets of tensors below ``folder``, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> dict[str, torch.Tensor] | None:
        """The tensors in memory of their own on the CPU; None if they are not there whole."""
        path = self._path(name)
        try:
            with safe_open(path, framework="pt") as file:
                expected = (file.metadata() or {}).get(_CHECKSUM)
                # Copied, so that no weight depends on a file that somebody may cut.
                tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError) as failure:
            log.warning("%s is damaged (%s); it is made anew", path, failure)
            return None
        if expected != _checksum(tensors):
            log.warning("%s is damaged (its checksum differs); it is made anew", path)
            return None
        with suppress(OSError):  # a folder that is only read
            os.utime(path)
        return tensors

    def write(self, name: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Keep the tensors, and let go of the sets that were unused for longest."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            self._require_space(sum(tensor.nbytes for tensor in tensors.values()))
            with tempfile.TemporaryDirectory(
                dir=self._folder, suffix=_PART, ignore_cleanup_errors=True
            ) as work:
                part = Path(work) / "tensors"
                save_file(dict(tensors), part, metadata={_CHECKSUM: _checksum(tensors)})
                part.replace(self._path(name))
        except (OSError, SafetensorError) as failure:
            log.warning(
                "Converted weights cannot be kept in %s (%s); the next start takes as long as this",
                self._folder,
                failure,
            )
            return
        self._drop_all_but(self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.safetensors"

    def _require_space(self, size: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < size + SPARE_BYTES:
            raise OSError(f"{size >> 20} MiB are needed and {free >> 20} MiB are free")

    def _sweep(self) -> None:
        """Remove what a process left behind that was killed while it wrote."""
        for leftover in self._folder.glob(f"*{_PART}"):
            with suppress(OSError):
                if time.time() - leftover.stat().st_mtime > ABANDONED_S:
                    shutil.rmtree(leftover)

    def _drop_all_but(self, newest: Path) -> None:
        with suppress(OSError):  # another process may tidy up as well
            stats = {path: path.stat() for path in self._folder.glob("*.safetensors")}
            used = stats.pop(newest).st_size
            last_used_first = sorted(stats, key=lambda one: stats[one].st_mtime, reverse=True)
            for place, path in enumerate(last_used_first, start=1):
                used += stats[path].st_size
                if place >= KEPT or used > KEPT_BYTES:
                    path.unlink()


def _checksum(tensors: Mapping[str, torch.Tensor]) -> str:
    """Over names, types, shapes and bytes: it finds what a disk does, not what a person does."""
    total = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype} {list(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"
