"""Golden folders: what is in them, and how a difference is told."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping

from golden.playing import FIXTURES

GOLDEN = FIXTURES / "golden"
SHOWN = 40
"""Lines of a difference that are shown."""


def names() -> set[str]:
    """The cases that have a golden folder, by name: ``<family>/<what>``."""
    folders = {path.parent for path in GOLDEN.rglob("*") if path.is_file()}
    return {folder.relative_to(GOLDEN).as_posix() for folder in folders}


def read(name: str) -> dict[str, bytes]:
    """The files of a case, none if it has no folder."""
    return {path.name: path.read_bytes() for path in sorted((GOLDEN / name).glob("*"))}


def write(name: str, files: Mapping[str, bytes]) -> None:
    """Make the folder hold these files and no other; no files, no folder."""
    folder = GOLDEN / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in set(read(name)) - set(files):
        (folder / file).unlink()
    for file, data in files.items():
        (folder / file).write_bytes(data)
    if not files:
        folder.rmdir()


def difference(name: str, found: Mapping[str, bytes], due: Mapping[str, bytes]) -> str:
    """What a reader has to know: ``found`` in the folder, ``due`` by the code. Empty if equal."""
    lines: list[str] = []
    for file in sorted(found.keys() | due.keys()):
        if found.get(file) != due.get(file):
            lines += _compared(f"{name}/{file}", found.get(file), due.get(file))
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], f"… and {len(lines) - SHOWN} lines more"]
    return "\n".join(lines)


def _compared(path: str, found: bytes | None, due: bytes | None) -> Iterator[str]:
    old, new = _readable(path, found), _readable(path, due)
    if old == new:  # JSON with other spaces
        old, new = [repr(found)], [repr(due)]
    return difflib.unified_diff(old, new, path, "from the code", "", "", 1, "")


def _readable(path: str, data: bytes | None) -> list[str]:
    """A file as lines; a body is spread out, so that the key that differs is on a line."""
    if data is None:
        return ["(no such file)"]
    if path.endswith(".json"):
        return json.dumps(json.loads(data), indent=1, ensure_ascii=False).split("\n")
    return data.decode().split("\n")
