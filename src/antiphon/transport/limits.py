"""What one client may take: the settings of the host that bound memory and time.

All times are in seconds. Each limit has a counter (``antiphon.transport.counted``) and closes or
refuses at the connection or stream at fault alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

KIB = 1024
LIMITED = "antiphon.limited"
"""The extension in the scope of a request whose header block and body are watched by the host."""


def are_applied(scope: Mapping[str, Any]) -> bool:
    """Whether the host of an ASGI scope watches over its header block and its body."""
    return LIMITED in (scope.get("extensions") or {})


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of a server; every connection of it has the same."""

    h2_max_concurrent_streams: int = 1024
    """Of one HTTP/2 connection, advertised; one more is refused alone and may be retried."""
    h2_initial_window: int = 1024 * KIB
    """Bytes of a request body that a client may send on a stream before it is read."""
    h2_connection_window: int = 4096 * KIB
    """The same for all streams of a connection together. Unfinished bodies but the oldest may hold
    8 times as much before they wait for it, and 16 times before the latest is refused."""
    max_header_bytes: int = 32 * KIB
    """Of a header block; a longer one is answered with 431."""
    max_header_fields: int = 100
    header_timeout: float = 5.0
    """From the first byte of a request to the end of its header block; on HTTP/2 also for any frame
    but DATA that has begun. There it costs the connection, which has no stream to answer on."""
    first_request_timeout: float = 10.0
    """From a new connection to its first request."""
    idle_timeout: float = 75.0
    """Between two requests of a connection."""
    body_first_byte: float = 10.0
    """From the header block to the first byte of the body."""
    body_min_rate: int = 1 * KIB
    """Bytes a second of a body, averaged over ``body_rate_window``; a slower one is answered with
    408."""
    body_rate_window: float = 10.0
    stream_high: int = 64 * KIB
    """Bytes queued for one stream above which nothing more is taken, …"""
    stream_low: int = 16 * KIB
    """… and at which more is taken again."""
    connection_high: int = 1024 * KIB
    """Bytes queued on one connection, of all its streams and of its socket."""
    stall_timeout: float = 120.0
    """For a client to take a single byte of what is queued for it; then it counts as gone."""
    peer_silence: float = 30.0
    """Without a byte from an HTTP/2 client with open streams, after which it is asked (PING)
    whether it is there; it has ``peer_answer`` to tell. Of every TCP connection they are also how
    long the system waits before it probes a silent one, and until it gives up."""
    peer_answer: float = 10.0
    reset_burst: int = 100
    """Streams that a client may reset at once before their answer has ended, …"""
    reset_rate: float = 20.0
    """… and how many a second after that."""
    control_burst: int = 1000
    """The same for frames that carry nothing: PING, SETTINGS, empty DATA. PRIORITY, DATA of less
    than 256 bytes and DATA for a stream that is over are a tenth of one. Of WINDOW_UPDATE there may
    be ten times as many, and what was sent allows more."""
    control_rate: float = 100.0
    max_connections: int = 4096
    """More wait in the backlog until one has gone."""


DEFAULT_LIMITS = Limits()
