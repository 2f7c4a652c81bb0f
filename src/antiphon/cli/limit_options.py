"""The limits of the transport as options of ``antiphon serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click

from antiphon.cli.ranges import COUNT, GIB, MANY, PER_SECOND, SECONDS
from antiphon.transport.limits import DEFAULT_LIMITS, Limits

C = TypeVar("C", bound=Callable[..., Any])

WINDOW = click.IntRange(2**16 - 1, 2**31 - 1)
"""RFC 9113, section 6.9.1. Below the 65,535 that every client begins with, one that has not seen
our settings yet would go beyond it in good faith."""
HEADER_BYTES = click.IntRange(1024, 2**20)
HEADER_FIELDS = click.IntRange(16, 10_000)
STREAMS = click.IntRange(1, 100_000)
RATE = click.IntRange(1, GIB)
LOW = click.IntRange(1024, GIB)
HIGH = click.IntRange(2**14, GIB)
"""A frame of HTTP/2 (RFC 9113, section 4.2)."""
ALL_HIGH = click.IntRange(2**16, GIB)
CONTROLS = click.IntRange(16, MANY)
"""What any client sends at the beginning is let pass."""

OPTIONS: dict[str, tuple[click.IntRange | click.FloatRange, str]] = {
    "max_connections": (COUNT, "Open connections; more wait in the backlog."),
    "h2_max_concurrent_streams": (
        STREAMS,
        "Of one HTTP/2 connection; more are refused one by one.",
    ),
    "h2_initial_window": (WINDOW, "Bytes of a body that may be under way on one HTTP/2 stream."),
    "h2_connection_window": (WINDOW, "The same for a whole HTTP/2 connection."),
    "max_header_bytes": (HEADER_BYTES, "Of a header block; a longer one is refused."),
    "max_header_fields": (HEADER_FIELDS, "Of a header block."),
    "header_timeout": (SECONDS, "Seconds that a header block may take."),
    "first_request_timeout": (SECONDS, "Seconds from a new connection to its first request."),
    "idle_timeout": (SECONDS, "Seconds between two requests of a connection."),
    "body_first_byte": (SECONDS, "Seconds from the headers to the first byte of the body."),
    "body_min_rate": (RATE, "Bytes a second of a body, on average; a slower one is refused."),
    "stream_high": (HIGH, "Bytes queued for one answer above which its reader is detached."),
    "stream_low": (LOW, "Bytes queued at which it is attached again."),
    "connection_high": (ALL_HIGH, "Bytes queued on one connection."),
    "stall_timeout": (SECONDS, "Seconds in which a reader must take a byte; else it has gone."),
    "peer_silence": (SECONDS, "Seconds of silence until a client is asked (PING; TCP probes)."),
    "peer_answer": (SECONDS, "Seconds that it has to answer."),
    "reset_burst": (COUNT, "Streams that an HTTP/2 client may reset at once."),
    "reset_rate": (PER_SECOND, "Streams a second that it may reset after that."),
    "control_burst": (
        CONTROLS,
        "The same for frames that carry nothing: PING, SETTINGS, empty DATA.",
    ),
    "control_rate": (PER_SECOND, "Such frames a second after that."),
}


def limit_options(command: C) -> C:
    """Adds an option for each of ``OPTIONS``, with the default of ``Limits``."""
    for name, (kind, meaning) in reversed(OPTIONS.items()):
        flag = f"--{name.replace('_', '-')}"
        default = getattr(DEFAULT_LIMITS, name)
        command = click.option(flag, default=default, type=kind, help=meaning)(command)
    return command


def take_limits(options: dict[str, Any]) -> Limits:
    """The limits among ``options``, which keep the rest."""
    return attrs.evolve(DEFAULT_LIMITS, **{name: options.pop(name) for name in OPTIONS})
