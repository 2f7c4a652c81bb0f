"""``antiphon serve``: load a model, listen, answer."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import anyio
import click

from antiphon.cli.engine_options import engine_options
from antiphon.cli.limit_options import limit_options, take_limits
from antiphon.cli.ranges import COUNT_OR_OFF, GIB, SECONDS_OR_OFF
from antiphon.cli.sources import let_flags_win, with_sources
from antiphon.cli.standard import hold_standard_files, say
from antiphon.config import (
    DEFAULT_FIXTURES,
    DEFAULTS,
    Config,
    EngineName,
    EventLoop,
    Switch,
    UnknownModelStatus,
)
from antiphon.errors import StartupError
from antiphon.serving import serve_forever
from antiphon.transport.settings import HttpVersions
from responsory.projections.reasoning import ReasoningField
from responsory.projections.responses import Profile


@click.command(context_settings={"auto_envvar_prefix": "ANTIPHON"})
@click.argument("model", required=False)
@click.option("--host", default=DEFAULTS.host, help="Address to listen on.")
@click.option(
    "--port", default=DEFAULTS.port, type=click.IntRange(0, 65535), help="0 picks a free one."
)
@click.option(
    "--bind",
    multiple=True,
    help="Address instead of host and port: HOST:PORT, unix:PATH or fd://N; repeatable.",
)
@click.option(
    "--backlog",
    default=DEFAULTS.backlog,
    type=click.IntRange(1, 65535),
    help="Connections that may wait to be accepted, on each address.",
)
@click.option(
    "--http",
    default=DEFAULTS.http,
    type=click.Choice(get_args(HttpVersions)),
    help="Versions of HTTP; auto is both.",
)
@click.option(
    "--loop",
    default=DEFAULTS.loop,
    type=click.Choice(get_args(EventLoop)),
    help="Event loop; auto is uvloop where it is installed.",
)
@click.option("--engine", default=DEFAULTS.engine, type=click.Choice(get_args(EngineName)))
@click.option(
    "--fixtures",
    type=click.Path(path_type=Path),
    help=f"Recordings for --engine replay. [default: ./{DEFAULT_FIXTURES}]",
)
@click.option("--pace", default=DEFAULTS.pace, help="Of replay: recorded, full, 20ms or 4x20ms.")
@click.option(
    "--api-key", multiple=True, help="Accepted Bearer key; repeatable (in the environment: spaces)."
)
@click.option("--certfile", type=click.Path(path_type=Path), help="TLS certificate chain, PEM.")
@click.option("--keyfile", type=click.Path(path_type=Path), help="TLS private key, PEM.")
@click.option(
    "--client-ca",
    type=click.Path(path_type=Path),
    help="Authorities, PEM; clients must show a certificate of one of them.",
)
@click.option(
    "--forwarded-allow-ips",
    multiple=True,
    help="Proxy whose X-Forwarded-For and -Proto are believed: address, network, unix or *.",
)
@click.option(
    "--access-log", help="File with a line of JSON for each request; - is standard output."
)
@engine_options
@click.option("--strict-requests", is_flag=True, help="Refuse unknown fields in requests.")
@click.option(
    "--wire-profile",
    default=DEFAULTS.wire_profile,
    type=click.Choice(get_args(Profile)),
    help="Names of the events of a Responses stream.",
)
@click.option(
    "--reasoning-field",
    default=DEFAULTS.reasoning_field,
    type=click.Choice(get_args(ReasoningField)),
    help="Where a chat answer shows its reasoning.",
)
@click.option(
    "--unknown-model-status",
    default=DEFAULTS.unknown_model_status,
    type=click.Choice(get_args(UnknownModelStatus)),
    help="Status of a request for a model that is not served.",
)
@click.option(
    "--request-timeout",
    default=DEFAULTS.request_timeout,
    type=SECONDS_OR_OFF,
    help="Seconds an answer may take; 0 is off.",
)
@click.option(
    "--max-body",
    default=DEFAULTS.max_body,
    type=click.IntRange(1, 1024 * GIB),
    help="Bytes of a request body; more is refused.",
)
@click.option(
    "--rate-limit",
    default=DEFAULTS.rate_limit,
    type=COUNT_OR_OFF,
    help="Generation requests per minute and API key; 0 is off.",
)
@click.option(
    "--max-waiting",
    default=DEFAULTS.max_waiting,
    type=COUNT_OR_OFF,
    help="Sequences that may wait for the engine; more are refused. 0 is off.",
)
@click.option(
    "--cors-origin",
    multiple=True,
    help="Origin whose pages may call the API, or *; repeatable (in the environment: spaces).",
)
@click.option(
    "--secret",
    help="Signs reasoning that clients keep; a random one if absent. Best set in the environment.",
)
@click.option(
    "--sse-ping-interval",
    default=DEFAULTS.sse_ping_interval,
    type=SECONDS_OR_OFF,
    help="Seconds of silence before a stream carries a comment; 0 is off.",
)
@click.option(
    "--drain-timeout",
    default=DEFAULTS.drain_timeout,
    type=SECONDS_OR_OFF,
    help="Seconds that open answers get when the server is told to stop.",
)
@click.option(
    "--h2-direct-framing",
    default=DEFAULTS.h2_direct_framing,
    type=click.Choice(get_args(Switch)),
    help="off: every HTTP/2 frame is made by the h2 library.",
)
@limit_options
def serve(**options: Any) -> None:
    """Serve MODEL: an alias, a GGUF file, a Hugging Face directory, or ORG/NAME of a model hub.

    Without MODEL the default one is served, and fetched first if need be. Every option can also be
    set in the environment, as ANTIPHON_ and its name.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    hold_standard_files()
    let_flags_win(options)
    try:
        config = Config(limits=take_limits(options), **options)
        config.check()
        loop = {"use_uvloop": config.uses_uvloop}
        at_rest = anyio.run(serve_forever, config, say, backend_options=loop)
    except StartupError as error:
        raise click.ClickException(with_sources(str(error))) from None
    if not at_rest or any(thread.daemon for thread in threading.enumerate()):
        _leave()


def _leave() -> None:
    """End the process and whatever threads are left: that load a model, run it or compile a form.

    The interpreter would wait for them, or pull itself away under native code that goes on: a
    thread that comes back from there finds nothing to come back to, and crashes.
    """
    with suppress(OSError):  # whoever read them has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)
