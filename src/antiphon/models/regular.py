"""A model's files are files: a pipe waits for whoever writes it, and a device has no end."""

from __future__ import annotations

import stat
from pathlib import Path

from antiphon.errors import StartupError


def require_regular(path: Path) -> None:
    """Raises ``StartupError`` for a pipe, a socket or a device.

    What is not there, or is a folder, is left to whoever reads it.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise StartupError(f"{path} is a pipe, a socket or a device, and must be a file.")
