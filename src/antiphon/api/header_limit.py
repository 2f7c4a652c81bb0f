"""Header blocks above the limit, under a host that does not refuse them itself."""

from __future__ import annotations

from quart import Quart, request, websocket
from werkzeug.datastructures import Headers

from antiphon.errors import HeadersTooLarge
from antiphon.transport.limits import DEFAULT_LIMITS, are_applied

MAX_HEADER_BYTES = DEFAULT_LIMITS.max_header_bytes
MAX_FIELDS = DEFAULT_LIMITS.max_header_fields
SEPARATORS = len(": \r\n")
"""Bytes that HTTP/1.1 adds to the name and the value of a field."""


def install(app: Quart) -> None:
    """Look at the headers before anything else does."""

    @app.before_request
    async def check_request() -> None:
        if not are_applied(request.scope):
            check(request.headers)

    @app.before_websocket
    async def check_handshake() -> None:
        if not are_applied(websocket.scope):
            check(websocket.headers)


def check(headers: Headers) -> None:
    """Raises ``HeadersTooLarge``."""
    size = sum(len(name) + len(value) + SEPARATORS for name, value in headers)
    if size > MAX_HEADER_BYTES or len(headers) > MAX_FIELDS:
        raise HeadersTooLarge(
            f"The header block is above {MAX_HEADER_BYTES} bytes or {MAX_FIELDS} fields."
        )
