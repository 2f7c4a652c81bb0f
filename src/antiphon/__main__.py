"""``antiphon`` and ``python -m antiphon``."""

from __future__ import annotations

import os

# OpenMP reads this once, when torch is first imported; its idle threads spin and slow the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import click

from antiphon import __version__
from antiphon.cli.doctor import doctor
from antiphon.cli.fetch import fetch
from antiphon.cli.serve import serve


@click.group(context_settings={"show_default": True})
@click.version_option(__version__, prog_name="antiphon")
def main() -> None:
    """An LLM inference server whose every answer is an event log."""


main.add_command(serve)
main.add_command(fetch)
main.add_command(doctor)

if __name__ == "__main__":
    main()
