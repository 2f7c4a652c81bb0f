"""Answers that the host gives by itself, as the error object that every other error has.

Hypercorn's own are empty: for a handshake that is none, for an application that did not answer.
"""

from __future__ import annotations

import json

from hypercorn.protocol.events import Body, Response

from antiphon.errors import AntiphonError, HeadersTooLarge, InvalidRequest
from antiphon.transport.settings import REQUEST_ID, HostConfig

_REQUEST_ID = REQUEST_ID.encode()


def error_for(status_code: int) -> AntiphonError:
    """What a status that the host chose means."""
    if status_code == HeadersTooLarge.status:
        return HeadersTooLarge("The header block is too large.")
    if status_code < AntiphonError.status:
        return InvalidRequest("The request is not valid HTTP.", code="invalid_http")
    return AntiphonError("The server made a mistake.")


def head_and_body(
    error: AntiphonError, config: HostConfig
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of the answer, with a request id of our own."""
    body = json.dumps(error.body(), separators=(",", ":")).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (_REQUEST_ID, config.new_request_id().encode()),
    ]
    return headers, body


def is_bare(response: Response) -> bool:
    """Whether this error is the host's own: those of the application have a request id."""
    names = {bytes(name).lower() for name, _ in response.headers}
    return response.status_code >= 400 and _REQUEST_ID not in names and b"content-type" not in names


def dressed(
    bare: Response, config: HostConfig, *connection: tuple[bytes, bytes]
) -> tuple[Response, Body]:
    """The host's own error with what every other error has, and headers of the connection."""
    headers, body = head_and_body(error_for(bare.status_code), config)
    headers += connection
    response = Response(stream_id=bare.stream_id, headers=headers, status_code=bare.status_code)
    return response, Body(stream_id=bare.stream_id, data=body)
