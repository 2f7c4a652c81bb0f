"""``antiphon fetch``: bring a model into the cache."""

from __future__ import annotations

import click

from antiphon.errors import StartupError
from antiphon.models.default import DEFAULT_NAME
from antiphon.models.fetch import fetch as fetch_model
from antiphon.models.hub import fetch_from_hub
from antiphon.models.hub_name import parse_hub_name


@click.command()
@click.argument("name", default=DEFAULT_NAME)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch(name: str, quiet: bool) -> None:
    """Download the model NAME, check it and keep it in the cache; prints its path.

    NAME is smollm2, the default model, or one on a model hub: ORG/NAME, ORG/NAME@REVISION, or
    ORG/NAME:FILE.gguf for one GGUF file of it. HF_TOKEN opens what is gated or private, HF_ENDPOINT
    names another hub.
    """
    try:
        if "/" in name:
            path = fetch_from_hub(parse_hub_name(name), quiet=quiet)
        else:
            path = fetch_model(name, quiet=quiet)
    except StartupError as error:
        raise click.ClickException(str(error)) from None
    click.echo(path)
