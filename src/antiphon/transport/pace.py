"""Request bodies have to arrive: soon, and then at some least rate.

Only the time counts in which the application waits for the body, so nobody is blamed for a server
that does not read. A rest of patience is worth so many seconds; each byte buys some of them back,
up to the length of a window: at the least rate the patience stays as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    ASGISendEvent,
    HTTPDisconnectEvent,
    HTTPScope,
    Scope,
)

from antiphon.transport.limits import LIMITED, Limits

GIVEN = "given"
"""In the extension ``LIMITED``: the messages of the answer that the application did not give."""
GONE: HTTPDisconnectEvent = {"type": "http.disconnect"}


class Pace:
    """The patience with one body."""

    def __init__(self, limits: Limits) -> None:
        self._window = limits.body_rate_window
        self._rate = limits.body_min_rate
        self._begun = False
        self.left = limits.body_first_byte
        """Seconds that may still be waited."""

    def waited(self, seconds: float) -> None:
        """It was waited for so long."""
        self.left -= seconds

    def came(self, size: int) -> None:
        """``size`` bytes have come."""
        if not size:
            return
        bought = size / self._rate if self._begun and self._rate else self._window
        self.left = min(self._window, self.left + bought)
        self._begun = True


Refuse = Callable[[HTTPScope, ASGISendCallable], Awaitable[None]]


def paced(app: AppWrapper, limits: Limits, refuse: Refuse) -> AppWrapper:
    """``app`` for one request, whose body is watched until it is there or the answer has begun.

    ``refuse`` is awaited when the body is too slow, with the request and what sends its answer. The
    application then hears that the client has gone, and what it still sends is dropped.
    """

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        given: list[ASGISendEvent] = []
        if scope["type"] != "lifespan":
            scope["extensions"][LIMITED] = {GIVEN: given}
        if scope["type"] == "http":
            watch = _Watch(limits, scope, receive, send, refuse, given)
            receive, send = watch.receive, watch.send
        await app(scope, receive, send, sync_spawn, call_soon)

    return call


class _Watch:
    """Between one application and its client."""

    def __init__(
        self,
        limits: Limits,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        refuse: Refuse,
        given: list[ASGISendEvent],
    ) -> None:
        self._given = given
        self._pace = Pace(limits)
        self._clock = asyncio.get_running_loop().time
        self._scope = scope
        self._receive = receive
        self._send = send
        self._refuse = refuse
        self._is_over = False
        """Nothing is watched any more."""
        self._refused = False

    async def receive(self) -> ASGIReceiveEvent:
        if self._refused:
            return GONE
        if self._is_over:
            return await self._receive()
        began = self._clock()
        try:
            async with asyncio.timeout(self._pace.left):
                message = await self._receive()
        except TimeoutError:
            return await self._too_late()
        self._pace.waited(self._clock() - began)
        if message["type"] == "http.request":
            self._pace.came(len(message["body"]))
            self._is_over = self._is_over or not message["more_body"]
        return message

    async def send(self, message: ASGISendEvent) -> None:
        self._is_over = True
        if self._refused:
            await asyncio.sleep(0)  # Who only sends could not be cancelled.
        else:
            await self._send(message)

    async def _too_late(self) -> ASGIReceiveEvent:
        if self._is_over:  # The answer has begun meanwhile.
            return await self._receive()
        self._is_over = self._refused = True
        await self._refuse(self._scope, self._give)
        return GONE

    async def _give(self, message: ASGISendEvent) -> None:
        self._given.append(message)
        await self._send(message)
