"""The command line of ``responsory.draw``. Exit status: 0, 1 for what is stale, 2 for an error."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from responsory.draw.errors import DrawError
from responsory.draw.sections import block, redrawn, sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = "python -m responsory.draw"


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw as ``arguments`` say, those of the process by default; gives the exit status."""
    parser = ArgumentParser(PROGRAM, description="Draws the machine: a diagram and tables.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    parser.add_argument("files", nargs="*", type=Path, help="Markdown files with marked sections")
    options = parser.parse_args(arguments)
    check: bool = options.check
    files: list[Path] = options.files
    if check and not files:
        parser.error("--check needs a file")
    try:
        return _draw(files, check=check)
    except DrawError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2


def _draw(files: Sequence[Path], *, check: bool) -> int:
    drawn = sections()
    if not files:
        _print("\n\n".join(block(name, text) for name, text in drawn.items()))
        return 0
    pages = {path: _redrawn(path, drawn) for path in files}
    if not check:
        _write(pages)
    word = "stale" if check else "redrawn"
    for path, (_, stale) in pages.items():
        _print(f"{path}: {word}: {', '.join(stale)}" if stale else f"{path}: up to date")
    return int(check and any(stale for _, stale in pages.values()))


def _redrawn(path: Path, drawn: Mapping[str, str]) -> tuple[str, list[str]]:
    try:
        return redrawn(path.read_bytes().decode(), drawn)
    except OSError as error:
        raise DrawError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DrawError(f"{path}: not UTF-8") from None
    except DrawError as error:
        raise DrawError(f"{path}: {error}") from None


def _write(pages: Mapping[Path, tuple[str, list[str]]]) -> None:
    """Write what has changed, once every page is known to be right."""
    for path, (text, stale) in pages.items():
        if stale:
            try:
                path.write_bytes(text.encode())
            except OSError as error:
                raise DrawError(f"{path}: {error.strerror}") from None


def _print(text: str) -> None:
    """In UTF-8, whatever the locale: the output is a page."""
    try:
        sys.stdout.buffer.write(f"{text}\n".encode())
        sys.stdout.flush()
    except OSError as error:
        sys.stdout = StringIO()  # what is still buffered cannot be written at exit either
        raise DrawError(f"standard output: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
