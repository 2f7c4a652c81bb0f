"""Where this host is stricter than h2 about what a client may send, and where it is milder."""

from __future__ import annotations

import logging

import h2.events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes, Settings

log = logging.getLogger("antiphon.transport")


class LenientSettings(Settings):
    """Settings that are advertised but whose stream limit is not h2's to enforce.

    h2 ends the whole connection at the first stream too many.
    """

    @property
    def max_concurrent_streams(self) -> int:
        return 2**32

    @max_concurrent_streams.setter
    def max_concurrent_streams(self, value: int) -> None:
        self[SettingCodes.MAX_CONCURRENT_STREAMS] = value


OF_A_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Headers that HTTP/1.1 needs and HTTP/2 forbids (section 8.2.2)."""


def without_hops(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, without those of a connection that an application has set."""
    kept = [pair for pair in headers if bytes(pair[0]).lower() not in OF_A_CONNECTION]
    if len(kept) < len(headers):
        log.debug("%d headers of a connection are no part of an answer", len(headers) - len(kept))
    return kept


def malformed(request: h2.events.RequestReceived) -> ErrorCodes | None:
    """Why this is no request for an application. h2 has checked most of it (section 8.3)."""
    pseudo = dict(request.headers)
    if pseudo[b":method"] == b"CONNECT":
        return ErrorCodes.HTTP_1_1_REQUIRED
    if not (pseudo[b":method"].isascii() and pseudo[b":path"].isascii()):
        return ErrorCodes.PROTOCOL_ERROR
    return None
