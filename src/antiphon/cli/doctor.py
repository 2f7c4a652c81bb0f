"""``antiphon doctor``: what this server makes of a model's files, without loading its weights."""

from __future__ import annotations

import click

from antiphon.cli.sources import with_sources
from antiphon.errors import StartupError
from antiphon.inspection import inspected


@click.command()
@click.argument("model", required=False)
@click.option("--tool-format", default="auto", metavar="NAME", help="As for serve.")
@click.option("--reasoning-format", default="auto", metavar="NAME", help="As for serve.")
def doctor(model: str | None, tool_format: str, reasoning_format: str) -> None:
    """Tell how MODEL would be served: its vocabulary, its chat template, its formats.

    MODEL is named as for serve; without it, it is the default one. Weights are not loaded.
    """
    try:
        for name, value in inspected(model, tool_format, reasoning_format):
            click.echo(f"{name:12}{value}")
    except StartupError as error:
        raise click.ClickException(with_sources(str(error))) from None
