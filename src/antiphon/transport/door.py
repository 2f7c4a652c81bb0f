"""One ASGI application in front of another that is not there yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope


class Door:
    """Hands each request to ``app``, which may be exchanged while it is served.

    Start-up and shutdown are told to the application that was there first.
    """

    def __init__(self, app: ASGIFramework) -> None:
        self.app = app
        self.drain: Callable[[], Awaitable[None]] = _nothing
        """How the present application brings its open answers to their end."""

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        await self.app(scope, receive, send)


async def _nothing() -> None:
    """There is nothing to drain."""
