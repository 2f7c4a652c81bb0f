"""Header blocks above the limit, under a host that does not refuse them itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quart import Quart, request, websocket

from antiphon.transport.header_size import refusal_of
from antiphon.transport.limits import DEFAULT_LIMITS, are_applied


def install(app: Quart) -> None:
    """Look at the headers before anything else does."""

    @app.before_request
    async def check_request() -> None:
        check(request.scope)

    @app.before_websocket
    async def check_handshake() -> None:
        check(websocket.scope)


def check(scope: Mapping[str, Any]) -> None:
    """Raises ``HeadersTooLarge`` for an ASGI scope whose host has not looked."""
    if are_applied(scope):
        return
    # Not every host tells the path as it came.
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    if query := scope["query_string"]:
        target += b"?" + query
    refusal = refusal_of(target, scope["headers"], DEFAULT_LIMITS)
    if refusal is not None:
        raise refusal
