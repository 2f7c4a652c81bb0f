"""Where vLLM is installed, and whether what is needed of it is there. README.md says how to get it.

``ANTIPHON_VLLM`` names the folder of a virtual environment of its own: this project neither
installs vLLM nor imports it.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs

FOLDER = "ANTIPHON_VLLM"
VERSION = "0.33.0"
SET_UP = "benchmarks/peers/README.md says how to set it up"


@attrs.frozen
class Install:
    """A virtual environment, and the package in it."""

    python: Path
    package: Path

    @property
    def rust(self) -> Path:
        """The front end written in Rust, which the wheel carries."""
        return self.package / "vllm-rs"


def find() -> Install:
    """The installation. Raises ``LookupError``, one line that says what is missing."""
    named = os.environ.get(FOLDER)
    if not named:
        raise LookupError(
            f"{FOLDER} is not set to the folder of a virtual environment with vLLM; {SET_UP}"
        )
    folder = Path(named).absolute()
    python = folder / "bin" / "python"
    if not python.is_file():
        raise LookupError(f"{FOLDER}={named} has no bin/python; {SET_UP}")
    for packages in sorted(folder.glob("lib/python*/site-packages")):
        versions = [found.name.split("-")[1] for found in packages.glob("vllm-*.dist-info")]
        if f"{VERSION}.dist" in versions:
            return Install(python, packages / "vllm")
        if versions:
            found = versions[0].removesuffix(".dist")
            raise LookupError(f"{FOLDER}={named} has vLLM {found}; {VERSION} is spoken to here")
    raise LookupError(f"{FOLDER}={named} has no vLLM in it; {SET_UP}")
