"""Where this host is stricter than h2 about what a client may send, and where it is milder."""

from __future__ import annotations

import h2.events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes, Settings


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


def malformed(request: h2.events.RequestReceived) -> ErrorCodes | None:
    """Why this is no request for an application. h2 has checked most of it (section 8.3)."""
    pseudo = dict(request.headers)
    if pseudo[b":method"] == b"CONNECT":
        return ErrorCodes.HTTP_1_1_REQUIRED
    if not (pseudo[b":method"].isascii() and pseudo[b":path"].isascii()):
        return ErrorCodes.PROTOCOL_ERROR
    return None
