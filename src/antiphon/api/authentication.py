"""Bearer keys (RFC 6750): with keys configured, every path under ``/v1`` needs one of them."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from quart import Quart, request

from antiphon.errors import Unauthorized

PROTECTED = ("/v1", "/tokenize", "/detokenize")


def install(app: Quart, keys: Sequence[str]) -> None:
    """Check the key before each request to a protected path."""
    if not keys:
        return
    encoded = [key.encode() for key in keys]

    @app.before_request
    async def check_key() -> None:
        protected = any(
            request.path == path or request.path.startswith(f"{path}/") for path in PROTECTED
        )
        if protected and request.method != "OPTIONS":
            scheme, _, given = request.headers.get("Authorization", "").partition(" ")
            # Every key is compared, so that the time taken tells nothing about any of them.
            matches = [hmac.compare_digest(given.strip().encode(), key) for key in encoded]
            if scheme.lower() != "bearer" or not any(matches):
                raise Unauthorized
