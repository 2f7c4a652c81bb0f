"""``antiphon fetch``: bring the default model into the cache."""

from __future__ import annotations

import click

from antiphon.errors import StartupError
from antiphon.models.default import DEFAULT_NAME
from antiphon.models.fetch import fetch as fetch_model


@click.command()
@click.argument("name", default=DEFAULT_NAME)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch(name: str, quiet: bool) -> None:
    """Download the model NAME, check it and keep it in the cache; prints its path."""
    try:
        path = fetch_model(name, quiet=quiet)
    except StartupError as error:
        raise click.ClickException(str(error)) from None
    click.echo(path)
