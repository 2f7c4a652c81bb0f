"""How large a header block is, whichever way it came."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.errors import HeadersTooLarge
from antiphon.transport.limits import Limits

SEPARATORS = len(": \r\n")
"""Bytes that HTTP/1.1 adds to the name and the value of a field."""


def refusal_of(
    target: bytes, headers: Iterable[tuple[bytes, bytes]], limits: Limits
) -> HeadersTooLarge | None:
    """Why a request for ``target`` with these headers is refused; None if it is not.

    Pseudo-headers of HTTP/2 are no fields: their place is the request line.
    """
    size, fields = len(target), 0
    for name, value in headers:
        if not name.startswith(b":"):
            size += len(name) + len(value) + SEPARATORS
            fields += 1
    if size <= limits.max_header_bytes and fields <= limits.max_header_fields:
        return None
    return HeadersTooLarge(
        f"The header block is above {limits.max_header_bytes} bytes or"
        f" {limits.max_header_fields} fields."
    )
