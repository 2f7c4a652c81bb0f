"""``Expect: 100-continue``: a body is asked for when the application wants it, and not before.

An error that is known from the head alone comes without ``100 Continue``, and saves the client its
body (RFC 9110, section 10.1.1). That an application wants the body is told by its first receive(),
as in other ASGI servers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)


def expects_continue(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request with these headers may wait before it sends its body."""
    return any(
        bytes(name).lower() == b"expect" and bytes(value).lower() == b"100-continue"
        for name, value in headers
    )


def asking(app: AppWrapper, ask: Callable[[], Awaitable[None]]) -> AppWrapper:
    """``app`` for one request. ``ask`` is awaited when it first receives before it has answered."""

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        pending = True

        async def ask_and_receive() -> ASGIReceiveEvent:
            nonlocal pending
            if pending:
                pending = False
                await ask()
            return await receive()

        async def answer(message: ASGISendEvent) -> None:
            nonlocal pending
            pending = False
            await send(message)

        await app(scope, ask_and_receive, answer, sync_spawn, call_soon)

    return call
