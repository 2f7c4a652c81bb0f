"""Mutants that are none: code that can be written either way.

``equivalent.toml`` names each by module, source line and change (no line numbers, so it stays true
while other lines move), with the reason why no test can tell it from the real code.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeAlias

from mutation.mutants import Mutant

Key: TypeAlias = tuple[str, str, str]
"""(module, line, change)"""

FILE = Path(__file__).with_name("equivalent.toml")


def key(mutant: Mutant) -> Key:
    return mutant.module, mutant.line, mutant.change


def read(file: Path = FILE) -> dict[Key, str]:
    """The reason of each. Raises ValueError for one without a reason, or named twice."""
    reasons: dict[Key, str] = {}
    for entry in tomllib.loads(file.read_text(encoding="utf-8"))["equivalent"]:
        for change in entry["changes"]:
            named = entry["module"], entry["line"], change
            if named in reasons or not entry["because"].strip():
                raise ValueError(f"named twice, or without a reason: {named}")
            reasons[named] = entry["because"]
    return reasons
