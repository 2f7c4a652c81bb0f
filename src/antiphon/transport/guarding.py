"""What stands before the application of one request: its header block and the pace of its body."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypercorn.typing import AppWrapper, ASGISendCallable, HTTPScope

from antiphon.errors import RequestTimeout
from antiphon.transport.bare_errors import answer, refusing
from antiphon.transport.header_size import refusal_of
from antiphon.transport.pace import paced
from antiphon.transport.settings import HostConfig


def guarded(
    app: AppWrapper,
    config: HostConfig,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    hang_up: Callable[[], None],
) -> AppWrapper:
    """``app`` for a request for ``target``; for one that is too large, what refuses it.

    ``hang_up`` is called when a body was too slow, and that has been said.
    """
    refusal = refusal_of(target, headers, config.limits)
    if refusal is not None:
        config.counted.large_headers += 1
        return config.fronted(refusing(refusal, config))

    async def refuse(scope: HTTPScope, send: ASGISendCallable) -> None:
        config.counted.slow_bodies += 1
        error = RequestTimeout("The request body did not arrive in time.")
        await answer(error, config, scope, send)
        hang_up()

    return paced(app, config.limits, refuse)
