"""How Hypercorn is told to behave, and the limits of this host."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Literal, TypeAlias

from hypercorn.config import Config
from hypercorn.typing import AppWrapper

from antiphon.transport.counted import Counted
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.sink import StepFlush

HttpVersions: TypeAlias = Literal["auto", "1.1", "2"]
"""What a server speaks; ``auto`` is both."""

BACKLOG = 2048
"""Connections that may wait to be accepted, of each listening socket."""
REQUEST_ID = "x-request-id"
"""The header that names a request, and its answer, whoever gives that."""
READ_AHEAD = 64 * 1024
"""Bytes taken from an HTTP/1.1 client that sends its next request while a response runs."""
UNREAD_BODY = 64 * 1024 * 1024
"""Bytes of a body that are read and dropped after an early answer. On HTTP/1.1 that keeps the
connection for the next request; a longer one costs it, and the answer says so. On HTTP/2 a longer
one costs its stream."""
HEADROOM = 8
"""How many times as long as it may be a header block can be to be answered with 431. One that is
longer still costs an HTTP/2 client its connection."""
HANDSHAKE_S = 10.0
SERVER = (b"server", b"antiphon")


class HostConfig(Config):
    """Hypercorn's settings for this host: no request count ends a connection.

    ``new_request_id`` names the requests that the host answers by itself; ``limits`` are what one
    client may take, and ``counted`` is where it is counted that one wanted more. ``http`` are the
    versions it speaks, ``h2_direct_framing`` whether it may frame HTTP/2's DATA by itself where
    that is plain. ``flush`` holds the connections that have something to write, and whoever runs it
    lets them. ``clock`` tells the seconds since 1970.
    """

    accesslog = None
    errorlog = logging.getLogger("antiphon.transport")
    keep_alive_max_requests = sys.maxsize
    ssl_handshake_timeout = HANDSHAKE_S

    def __init__(
        self,
        new_request_id: Callable[[], str],
        limits: Limits = DEFAULT_LIMITS,
        counted: Counted | None = None,
        *,
        http: HttpVersions = "auto",
        h2_direct_framing: bool = True,
        flush: StepFlush | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.flush = StepFlush() if flush is None else flush
        self.new_request_id = new_request_id
        self.limits = limits
        self.counted = Counted() if counted is None else counted
        self.http: HttpVersions = http
        self.h2_direct_framing = h2_direct_framing
        self.fronted: Callable[[AppWrapper], AppWrapper] = lambda app: app
        """What stands before answers that the host gives to a request by itself."""
        self._clock = clock
        self._second = -1
        self._date = (b"date", b"")
        # What Hypercorn's own code reads of them.
        self.h2_max_concurrent_streams = limits.h2_max_concurrent_streams
        self.h2_max_header_list_size = limits.max_header_bytes
        self.h11_max_incomplete_size = limits.max_header_bytes
        self.keep_alive_timeout = limits.idle_timeout

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:  # noqa: ARG002
        """``date`` and ``server``, for every response. The date is rendered once a second."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._date = (b"date", formatdate(second, usegmt=True).encode())
        return [self._date, SERVER]
