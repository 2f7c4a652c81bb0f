"""The files that a process is started with: they may be closed, or full."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

STANDARD = (0, 1, 2)


def hold_standard_files() -> None:
    """Open what is closed of them, on nothing.

    Else the next sockets would get their numbers, and what is meant for a person.
    """
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # The lowest number that is free.


def say(line: str) -> None:
    """Print ``line``; when standard output takes none, say so once on standard error."""
    try:
        click.echo(line)
    except OSError as error:
        # What is left in its buffer would fail again at the end.
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        click.echo(f"Standard output takes nothing: {error.strerror}.", err=True)
