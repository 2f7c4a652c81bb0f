"""``antiphon serve``: load a model, listen, answer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import click

from antiphon.app import serve_forever
from antiphon.config import Config
from antiphon.errors import StartupError


@click.command(context_settings={"auto_envvar_prefix": "ANTIPHON"})
@click.argument("model", required=False)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), help="0 picks a free one.")
@click.option("--engine", default="torch", type=click.Choice(["torch", "replay"]))
@click.option(
    "--fixtures",
    type=click.Path(path_type=Path),
    help="Recordings for --engine replay. [default: ./fixtures]",
)
@click.option("--pace", default="recorded", help="Replay pace: recorded, full, 20ms or 4x20ms.")
@click.option(
    "--api-key",
    "api_keys",
    multiple=True,
    envvar="ANTIPHON_API_KEY",
    help="Accepted Bearer key; repeatable, or several in ANTIPHON_API_KEY.",
)
@click.option("--certfile", type=click.Path(path_type=Path), help="TLS certificate chain, PEM.")
@click.option("--keyfile", type=click.Path(path_type=Path), help="TLS private key, PEM.")
@click.option("--device", default="auto", help="auto, cpu or cuda[:N].")
@click.option("--dtype", default="auto", help="auto, float32, bfloat16 or float16.")
@click.option("--threads", default=1, type=click.IntRange(1), help="Threads of torch.")
@click.option("--max-running", default=16, type=click.IntRange(1), help="Sequences per batch.")
@click.option(
    "--served-model-name", "served_model_names", multiple=True, help="Public id; repeatable."
)
@click.option("--strict-requests", is_flag=True, help="Refuse unknown fields in requests.")
@click.option(
    "--sse-ping-interval",
    default=15.0,
    type=click.FloatRange(0),
    help="Seconds of silence before a stream carries a comment; 0 is off.",
)
@click.option(
    "--grace", default=2.0, type=click.FloatRange(0), help="Seconds for open answers at the end."
)
def serve(**options: Any) -> None:
    """Serve MODEL: an alias, a GGUF file or a Hugging Face directory.

    Without MODEL the default one is served, and fetched first if need be. Every option can also be
    set in the environment, as ANTIPHON_ and its name.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        config = Config(**options)
        config.check()
        anyio.run(serve_forever, config, click.echo)
    except StartupError as error:
        raise click.ClickException(str(error)) from None
