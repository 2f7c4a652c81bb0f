"""Pages of other origins may call the API from a browser, where the operator says so (Fetch, CORS).

Written here, and not left to quart-cors: that has preflights answered by Quart's automatic OPTIONS,
per route, and there is none here, for whatever is not served yet while a model is loaded, and
before the key is asked for. All that remains is a dozen headers.

No cookie plays a part: whoever calls has a key of their own or needs none.
"""

from __future__ import annotations

from collections.abc import Sequence

from quart import Quart, Response, request

ANY = "*"
METHODS = "DELETE, GET, HEAD, POST"
EXPOSED = (
    "x-request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "antiphon-ignored-fields",
    "openai-processing-ms",
    "www-authenticate",
    "allow",
)
"""What a page may read of an answer besides the few headers that it may always read."""
MAX_AGE_S = 600
"""How long a browser need not ask again."""
ORIGIN, ASKED = "Origin", "Access-Control-Request-Headers"
ASKED_METHOD = "Access-Control-Request-Method"


def install(app: Quart, origins: Sequence[str]) -> None:
    """Let pages of ``origins`` in; without any, nothing is different.

    A preflight is answered on every path: what the request itself gets, a page can then read.
    """
    if not origins:
        return

    @app.before_request
    async def answer_preflight() -> Response | None:
        asks = ORIGIN in request.headers and ASKED_METHOD in request.headers
        return Response(b"", 204) if asks and request.method == "OPTIONS" else None

    @app.after_request
    async def mark(response: Response) -> Response:
        if ANY not in origins:
            response.vary.add(ORIGIN)
        if (origin := _allowed(origins)) is None:
            return response
        headers = response.headers
        headers["access-control-allow-origin"] = origin
        if response.status_code == 204 and request.method == "OPTIONS":
            headers["access-control-allow-methods"] = METHODS
            if asked := request.headers.get(ASKED):
                headers["access-control-allow-headers"] = asked
                response.vary.add(ASKED)
            headers["access-control-max-age"] = str(MAX_AGE_S)
        else:
            headers["access-control-expose-headers"] = ", ".join(EXPOSED)
        return response


def _allowed(origins: Sequence[str]) -> str | None:
    """What the answer says of its page's origin; None where nothing is said."""
    given = request.headers.get(ORIGIN)
    if given is None or ANY in origins:
        return given and ANY
    return given if given in origins else None
