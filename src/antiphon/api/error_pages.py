"""Every error of every path as the OpenAI error object, and a request id on every answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from quart import Quart, Response, g, has_websocket_context, request, websocket
from quart.typing import ResponseTypes
from werkzeug import exceptions
from werkzeug.wrappers import Response as WerkzeugResponse

from antiphon.api.identity import tail_of
from antiphon.api.json_response import json_response
from antiphon.errors import (
    AntiphonError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    RequestTimeout,
    ShuttingDown,
    Unavailable,
)
from antiphon.transport.quart_host import EVENT_STREAM
from antiphon.transport.settings import REQUEST_ID

log = logging.getLogger(__name__)

MAX_SHOWN = 200
"""Characters of an unknown path that its refusal repeats."""


def install(app: Quart, new_tail: Callable[[], str]) -> None:
    """Register the handlers on ``app``; ``new_tail`` mints an id for whoever brings none."""

    @app.before_request
    async def name_request() -> None:
        g.began_ns = time.perf_counter_ns()
        _name(request.headers.get(REQUEST_ID), new_tail)

    @app.before_websocket
    async def name_websocket() -> None:
        _name(websocket.headers.get(REQUEST_ID), new_tail)

    @app.after_request
    async def echo_request_id(response: Response) -> Response:
        response.headers[REQUEST_ID] = g.get("request_id") or new_tail()
        if response.status_code == 200 and response.mimetype != EVENT_STREAM:
            spent_ms = (time.perf_counter_ns() - g.began_ns) // 1_000_000
            response.headers.setdefault("openai-processing-ms", str(spent_ms))
        return response

    @app.after_websocket
    async def name_refusal(response: WerkzeugResponse | Response | None) -> ResponseTypes | None:
        if response is not None:  # the upgrade was refused
            response.headers[REQUEST_ID] = g.request_id
        return response

    @app.errorhandler(AntiphonError)
    async def refused(error: AntiphonError) -> Response:
        response = error_response(error)
        if isinstance(error, Unavailable | RateLimited):
            g.refused = error.code
        if isinstance(error, ShuttingDown) and _is_http1():
            response.headers["connection"] = "close"
        return response

    @app.errorhandler(exceptions.HTTPException)
    async def host_refused(error: exceptions.HTTPException) -> Response:
        return error_response(_translate(error))

    @app.errorhandler(Exception)
    async def broken(error: Exception) -> Response:
        log.error("unhandled error on %s", _target(), exc_info=error)
        return error_response(AntiphonError("The server made a mistake."))


def error_response(error: AntiphonError) -> Response:
    """The answer that a refusal becomes."""
    return json_response(error.body(), error.status, error.headers)


def _name(given: str | None, new_tail: Callable[[], str]) -> None:
    """Set T of this request, and what its answer says it is."""
    tail = tail_of(given)
    g.tail_given = tail is not None
    g.tail = tail or new_tail()
    g.request_id = given if tail else g.tail


def _is_http1() -> bool:
    """Whether the connection has headers of its own: those of HTTP/2 have none."""
    return not has_websocket_context() and request.http_version.startswith("1")


def _target() -> str:
    """Method and path, of a request or of the upgrade to a websocket."""
    if has_websocket_context():
        return f"WebSocket {websocket.path[:MAX_SHOWN]}"
    return f"{request.method[:MAX_SHOWN]} {request.path[:MAX_SHOWN]}"


def _translate(error: exceptions.HTTPException) -> AntiphonError:
    """The errors that the web framework itself raises."""
    match error:
        case exceptions.NotFound():
            return NotFound(f"Unknown URL: {_target()}.")
        case exceptions.MethodNotAllowed():
            allow = ", ".join(sorted({*(error.valid_methods or ())} - {"OPTIONS"}))
            return MethodNotAllowed(f"The method is not allowed: {_target()}.", allow=allow)
        case exceptions.RequestTimeout():
            return RequestTimeout("The request body did not arrive in time.")
        case exceptions.RequestEntityTooLarge():
            return PayloadTooLarge("The request body is too large.")
        case exceptions.HTTPException(code=int(code)) if code < 500:
            return InvalidRequest("The request could not be understood.")
        case _:
            return AntiphonError("The server made a mistake.")
