"""Bearer keys (RFC 6750): with keys configured, every route but the open ones needs one of them."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from quart import Quart, request

from antiphon.errors import Unauthorized

OPEN = frozenset({"/health"})
"""Routes that need no key, by their exact rule."""
PROTECTED = ("/v1", "/tokenize", "/detokenize")
"""Paths that need a key even where no route matches them: a 404 tells what exists."""


def install(app: Quart, keys: Sequence[str]) -> None:
    """Check the key before each request that needs one."""
    if not keys:
        return
    encoded = [key.encode() for key in keys]

    @app.before_request
    async def check_key() -> None:
        if _needs_key() and not _has_key(request.headers.get("Authorization", ""), encoded):
            raise Unauthorized


def _needs_key() -> bool:
    """Decided by the route that was matched: a path can be spelt in more ways than one."""
    if request.method == "OPTIONS":
        return False
    if request.url_rule is not None:
        return request.url_rule.rule not in OPEN
    return any(request.path == path or request.path.startswith(f"{path}/") for path in PROTECTED)


def _has_key(header: str, keys: Sequence[bytes]) -> bool:
    scheme, _, given = header.partition(" ")
    # Every key is compared, so that the time taken tells nothing about any of them.
    matches = [hmac.compare_digest(given.strip().encode(), key) for key in keys]
    return scheme.lower() == "bearer" and any(matches)
