"""Bearer keys (RFC 6750): with keys configured, every route but the open ones needs one of them."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from quart import Quart, g, request, websocket
from werkzeug.routing import Rule

from antiphon.errors import Unauthorized

OPEN = frozenset({"/health", "/live", "/ready", "/metrics", "/version"})
"""Routes that need no key, by their exact rule."""
PROTECTED = ("/v1", "/tokenize", "/detokenize")
"""Paths that need a key even where no route matches them: a 404 tells what exists."""


def install(app: Quart, keys: Sequence[str]) -> None:
    """Check the key before each request and each handshake of a websocket that needs one.

    ``g.key`` is then the number of the key that was given, None where no key was asked for.
    """
    encoded = [key.encode() for key in keys]

    @app.before_request
    async def check_request() -> None:
        needed = bool(keys) and request.method != "OPTIONS"
        g.key = None
        if needed and _is_protected(request.path, request.url_rule):
            g.key = _key_of(request.headers.get("Authorization", ""), encoded)

    @app.before_websocket
    async def check_handshake() -> None:
        g.key = None
        if keys and _is_protected(websocket.path, websocket.url_rule):
            g.key = _key_of(websocket.headers.get("Authorization", ""), encoded)


def _is_protected(path: str, rule: Rule | None) -> bool:
    """Decided by the route that was matched: a path can be spelt in more ways than one."""
    if rule is not None:
        return rule.rule not in OPEN
    return any(path == each or path.startswith(f"{each}/") for each in PROTECTED)


def _key_of(header: str, keys: Sequence[bytes]) -> int:
    """The number of the key in the header. Raises ``Unauthorized`` when there is none."""
    scheme, _, given = header.partition(" ")
    # Every key is compared, so that the time taken tells nothing about any of them.
    matches = [hmac.compare_digest(given.strip().encode(), key) for key in keys]
    if scheme.lower() != "bearer" or not any(matches):
        raise Unauthorized
    return matches.index(True)
