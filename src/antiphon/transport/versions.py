"""A server that speaks one version of HTTP alone, and what clients of the other one get.

Over TLS only that version can be agreed on. Elsewhere a client of HTTP/2 is told HTTP_1_1_REQUIRED
(RFC 9113, section 7), and one of HTTP/1.1 gets a 505; an ``Upgrade: h2c`` is either followed or,
as any server may, passed over.
"""

from __future__ import annotations

import h11
from h2.errors import ErrorCodes
from hypercorn.events import RawData
from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope
from hyperframe.frame import GoAwayFrame, SettingsFrame

from antiphon.errors import VersionNotSupported
from antiphon.transport.bare_errors import head_and_body
from antiphon.transport.http1 import AntiphonH1
from antiphon.transport.settings import HostConfig

HTTP_1_1_REQUIRED = b"".join(
    frame.serialize()
    for frame in (
        SettingsFrame(0),
        GoAwayFrame(0, error_code=ErrorCodes.HTTP_1_1_REQUIRED),
    )
)
"""All that a client of HTTP/2 is told."""


class Http1Only(AntiphonH1):
    """One connection of a server without HTTP/2."""

    async def _check_protocol(self, event: h11.Request) -> None:
        """No other protocol is offered; Hypercorn's cannot be told so."""

    async def _create_stream(self, request: h11.Request) -> None:
        """Hypercorn's takes the preface of HTTP/2 for a request, and answers in HTTP/1.1."""
        if request.method == b"PRI" and request.http_version == b"2.0":
            await self.send(RawData(HTTP_1_1_REQUIRED))
            await self._stop_listening()
        else:
            await super()._create_stream(request)


def http1_of(config: HostConfig) -> type[AntiphonH1]:
    """The class of the connections that begin with HTTP/1.1, or with what is neither."""
    return Http1Only if config.http == "1.1" else AntiphonH1


class Http2Only:
    """``app`` without HTTP/1.1, whose requests are refused."""

    def __init__(self, app: ASGIFramework, config: HostConfig) -> None:
        self._app = app
        self._config = config

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """As ASGI; a handshake of a websocket is a request of HTTP/1.1 as well."""
        if scope["type"] == "lifespan" or scope["http_version"] == "2":
            await self._app(scope, receive, send)
            return
        headers, body = head_and_body(
            VersionNotSupported("This server speaks HTTP/2 only."), self._config
        )
        headers.append((b"connection", b"close"))
        if scope["type"] == "websocket":
            await send({"type": "websocket.http.response.start", "status": 505, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": body, "more_body": False})
        else:
            await send({"type": "http.response.start", "status": 505, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})
