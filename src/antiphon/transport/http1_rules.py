"""What HTTP/1.1 says and Hypercorn does not: phrases, and which upgrades can be followed."""

from __future__ import annotations

import base64
import binascii
from http import HTTPStatus

import h11


def reason(status_code: int) -> bytes:
    """The phrase of a status line; empty for a status that has none."""
    try:
        return HTTPStatus(status_code).phrase.encode()
    except ValueError:
        return b""


def settings_are_sound(request: h11.Request) -> bool:
    """Whether an upgrade to h2c, if this is one, brings settings that can be read.

    One that does not is answered as the HTTP/1.1 request it also is (RFC 7540, section 3.2.1).
    """
    fields = dict(request.headers)
    if b"upgrade" not in fields:
        return True
    text = fields.get(b"http2-settings", b"")
    try:
        settings = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return False
    return len(settings) % 6 == 0
