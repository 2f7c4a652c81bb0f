"""Answers that the host gives by itself, as the error object that every other error has.

Hypercorn's own are empty: for a handshake that is none, for an application that did not answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypercorn.protocol.events import Body, Response
from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPResponseStartEvent,
    HTTPScope,
    Scope,
    WebsocketResponseStartEvent,
)

from antiphon.errors import AntiphonError, HeadersTooLarge, InvalidRequest, RequestTimeout
from antiphon.transport.naming import id_in
from antiphon.transport.settings import REQUEST_ID, HostConfig

_REQUEST_ID = REQUEST_ID.encode()


def error_for(status_code: int) -> AntiphonError:
    """What a status that the host chose means."""
    if status_code == HeadersTooLarge.status:
        return HeadersTooLarge("The header block is too large.")
    if status_code == RequestTimeout.status:
        return RequestTimeout("The request did not arrive in time.")
    if status_code < AntiphonError.status:
        return InvalidRequest("The request is not valid HTTP.", code="invalid_http")
    return AntiphonError("The server made a mistake.")


def head_and_body(
    error: AntiphonError, config: HostConfig, request_id: str | None = None
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of the answer, with a request id of our own where the client gave none."""
    body = json.dumps(error.body(), separators=(",", ":")).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (_REQUEST_ID, (request_id or config.new_request_id()).encode()),
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


async def answer(
    error: AntiphonError, config: HostConfig, scope: HTTPScope, send: ASGISendCallable
) -> None:
    """Give ``error`` as the whole answer to the request of ``scope``."""
    headers, body = head_and_body(error, config, id_in(scope["headers"]))
    start: HTTPResponseStartEvent = {
        "type": "http.response.start",
        "status": error.status,
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def refusing(error: AntiphonError, config: HostConfig) -> AppWrapper:
    """An application that answers one request with ``error``, and one handshake too."""

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        del receive, sync_spawn, call_soon
        if scope["type"] == "http":
            await answer(error, config, scope, send)
            return
        if scope["type"] != "websocket":
            raise NotImplementedError
        headers, body = head_and_body(error, config, id_in(scope["headers"]))
        refusal: WebsocketResponseStartEvent = {
            "type": "websocket.http.response.start",
            "status": error.status,
            "headers": headers,
        }
        await send(refusal)
        await send({"type": "websocket.http.response.body", "body": body, "more_body": False})

    return call
