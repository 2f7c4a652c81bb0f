"""The JSON body of the current request: media type, then size (by the host), then syntax.

A small body is parsed where it is; a large one in a thread, because minutes of other clients'
streams must not wait for one client's megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from quart import request

from antiphon.api.service import Service
from antiphon.errors import InvalidRequest, RequestTimeout, UnsupportedMedia
from antiphon.requests.body import Body
from antiphon.requests.json_body import parse_object

T = TypeVar("T", bound=Body)

SMALL = 32 * 1024
"""Bytes that are parsed on the event loop: well under a millisecond."""


async def read_request(
    service: Service, parse: Callable[[Mapping[str, Any]], T]
) -> tuple[T, list[str]]:
    """The typed request and the sorted paths of the fields that change nothing.

    They are unknown, unless the server refuses those, or known and without effect here.

    Raises ``UnsupportedMedia``, ``PayloadTooLarge``, ``RequestTimeout``, ``InvalidRequest``.
    """
    if request.mimetype != "application/json":
        raise UnsupportedMedia("The content type must be application/json.")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("Encoded request bodies are not supported.")
    try:
        with anyio.fail_after(service.body_timeout_s):
            body = await request.body
    except TimeoutError:
        raise RequestTimeout("The request body did not arrive in time.") from None

    def work() -> T:
        return parse(parse_object(body))

    typed = work() if len(body) <= SMALL else await to_thread.run_sync(work)
    if typed.unknown and service.strict_requests:
        first = min(typed.unknown)
        raise InvalidRequest(
            f"Unknown parameter: `{first}`.", code="unknown_parameter", param=first
        )
    return typed, sorted([*typed.ignored, *typed.unknown])
