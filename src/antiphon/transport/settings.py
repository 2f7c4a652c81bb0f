"""How Hypercorn is told to behave, and the limits of this host."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from hypercorn.config import Config

from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.sink import StepFlush

REQUEST_ID = "x-request-id"
"""The header that names a request, and its answer, whoever gives that."""
READ_AHEAD = 64 * 1024
"""Bytes taken from an HTTP/1.1 client that sends its next request while a response runs."""
UNREAD_BODY = 64 * 1024 * 1024
"""Bytes of an HTTP/1.1 body that are read and dropped after an early answer, to keep the
connection for the next request; a longer one costs it, and the answer says so."""
MAX_HEADER_BYTES = 32 * 1024
"""Of a header block, as HTTP/2 clients are told; what is above is refused by the application …"""
MAX_DECODED_HEADERS = 1024 * 1024
"""… up to this size, above which it costs an HTTP/2 client its connection."""
HANDSHAKE_S = 10.0


class HostConfig(Config):
    """Hypercorn's settings for this host: no request count ends a connection.

    ``new_request_id`` names the requests that the host answers by itself; ``limits`` are what one
    client may take. ``flush`` holds the connections that have something to write: whoever runs it
    lets them. ``h2_direct_framing`` False leaves all frames of HTTP/2 to h2, more slowly.
    """

    accesslog = None
    errorlog = logging.getLogger("antiphon.transport")
    h11_max_incomplete_size = MAX_HEADER_BYTES
    h2_max_header_list_size = MAX_HEADER_BYTES
    keep_alive_max_requests = sys.maxsize
    ssl_handshake_timeout = HANDSHAKE_S

    def __init__(
        self,
        new_request_id: Callable[[], str],
        limits: Limits = DEFAULT_LIMITS,
        *,
        flush: StepFlush | None = None,
        h2_direct_framing: bool = True,
    ) -> None:
        super().__init__()
        self.flush = StepFlush() if flush is None else flush
        self.h2_direct_framing = h2_direct_framing
        self.new_request_id = new_request_id
        self.limits = limits
        # What Hypercorn's own code reads of them.
        self.h2_max_concurrent_streams = limits.h2_max_concurrent_streams
        self.keep_alive_timeout = limits.idle_timeout

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """``date`` and ``server``, for every response."""
        ours = [pair for pair in super().response_headers(protocol) if pair[0] != b"server"]
        return [*ours, (b"server", b"antiphon")]
