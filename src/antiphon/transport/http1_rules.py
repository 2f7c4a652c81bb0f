"""What HTTP/1.1 says and Hypercorn does not: phrases, versions, framing, and which upgrades can be
followed."""

from __future__ import annotations

import base64
import binascii
import struct
from http import HTTPStatus

import h11
from h2.exceptions import InvalidSettingsValueError
from h2.settings import Settings
from hypercorn.typing import H11SendableEvent

from antiphon.errors import CodingNotSupported, RequestTimeout, VersionNotSupported

OTHER_CODING = CodingNotSupported(
    "A body has to be sent with a content-length, or with transfer-encoding: chunked and no other."
)
OTHER_VERSION = VersionNotSupported("This version of HTTP is not spoken here.")


def reason(status_code: int) -> bytes:
    """The phrase of a status line; empty for a status that has none."""
    try:
        return HTTPStatus(status_code).phrase.encode()
    except ValueError:
        return b""


def finished_head(event: H11SendableEvent, *, last: bool) -> H11SendableEvent:
    """``event``; the head of an answer with its phrase, and with the end if it is the ``last``."""
    if not isinstance(event, h11.Response | h11.InformationalResponse):
        return event
    headers = list(event.headers.raw_items())
    if isinstance(event, h11.Response) and (last or event.status_code == RequestTimeout.status):
        headers.append((b"connection", b"close"))
    return type(event)(
        status_code=event.status_code,
        headers=headers,
        reason=event.reason or reason(event.status_code),
    )


def is_spoken(request: h11.Request) -> bool:
    """Whether its version is one of HTTP/1, whose minor ones all mean the same (RFC 9110,
    section 2.5)."""
    return request.http_version.startswith(b"1.")


def is_framed_once(request: h11.Request) -> bool:
    """Whether only one field says where the body ends.

    Somebody on the way may have gone by the other one, so what follows could be anybody's
    (RFC 9112, section 6.1).
    """
    return not {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}


def settings_are_sound(request: h11.Request) -> bool:
    """Whether an upgrade to h2c, if this is one, brings settings that can be read and be followed.

    One that does not is answered as the HTTP/1.1 request it also is (RFC 7540, section 3.2.1).
    """
    fields = dict(request.headers)
    if b"upgrade" not in fields:
        return True
    text = fields.get(b"http2-settings", b"")
    try:
        payload = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
        settings = Settings(client=True)
        for code, value in struct.iter_unpack("!HL", payload):
            settings[code] = value
    except (binascii.Error, struct.error, InvalidSettingsValueError):
        return False
    return True
