"""The Quart side of the host: how a request's tasks end, and the response that streams events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, HTTPScope
from quart import Quart, Response
from quart.asgi import ASGIHTTPConnection, _handle_exception
from quart.typing import ResponseTypes
from quart.utils import encode_headers, raise_task_exceptions
from quart.wrappers import Request
from quart.wrappers.request import Body

from antiphon.transport.expecting import expects_continue
from antiphon.transport.sink import FRAMES, FrameSink

EVENT_STREAM = "text/event-stream"


class EventSource(Protocol):
    """Where an event stream's bytes come from; ``aclose`` is idempotent."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class FrameSource(EventSource, Protocol):
    """An event source that can offer its frames itself."""

    def attach(self, sink: FrameSink) -> None:
        """Offer to ``sink`` what is there and what comes, then end it."""
        ...


_unsent: ContextVar[list[EventSource]] = ContextVar("antiphon_event_sources")


class EventStreamResponse(Response):
    """Server-sent events from ``source``: a response without a time limit.

    ``source`` is closed when the response ends, whichever way it ends, and also when the client
    has gone before the response was begun. On a host with a frame sink a ``FrameSource`` is
    attached to that, and no task wakes for a frame; on any other it is iterated.
    """

    def __init__(self, source: EventSource, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(
            source,
            headers={
                "cache-control": "no-cache",
                # Asks a buffering proxy to let every event through as it comes.
                "x-accel-buffering": "no",
                **(headers or {}),
            },
            content_type=f"{EVENT_STREAM}; charset=utf-8",
        )
        self.timeout = None
        self.source = source
        sources = _unsent.get(None)
        if sources is not None:
            sources.append(source)


WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose handlers read the body, or refuse it, before they wait for anything else."""


class ExpectedBody(Body):
    """A body that the client keeps back until it is wanted."""

    def __init__(self, *limits: int | None) -> None:
        super().__init__(*limits)
        self.wanted = asyncio.Event()

    def __await__(self) -> Generator[Any, None, Any]:
        if self._must_raise is None:  # One that is known to be too long is not wanted.
            self.wanted.set()
        return (yield from super().__await__())

    async def __anext__(self) -> bytes:
        if self._must_raise is None:
            self.wanted.set()
        return await super().__anext__()


def refuse_body(body: Body, error: Exception) -> None:
    """Whoever waits for the body, or begins to, gets ``error``, and what is on its way is dropped.

    Quart has no public way to that; it does the same with a body that is too long.
    """
    body._must_raise = error
    body.set_complete()


class AntiphonHTTPConnection(ASGIHTTPConnection):
    """Quart's ASGI HTTP connection, for ``app.asgi_http_class``.

    Whatever ends the ASGI call ends the request: both inner tasks are cancelled and awaited, where
    Quart leaves them running when the call itself is cancelled.
    """

    def __init__(self, app: Quart, scope: HTTPScope) -> None:
        # Quart takes the first character of the path, and a target such as ``?x`` has none.
        super().__init__(app, {**scope, "path": scope["path"] or "/"})

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = self._create_request_from_scope(send)
        if request.method in WITH_BODY and expects_continue(self.scope["headers"]):
            body = ExpectedBody(request.content_length, self.app.config["MAX_CONTENT_LENGTH"])
            request.body, send = body, _answering(send, body.wanted)
        receiver = asyncio.ensure_future(self.handle_messages(request, receive))
        handler = asyncio.ensure_future(self.handle_request(request, send))
        tasks = {receiver, handler}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(tasks)
        raise_task_exceptions(tasks)

    async def handle_messages(self, request: Request, receive: ASGIReceiveCallable) -> None:
        """Take the body and hear of a client that leaves.

        To receive is to ask for the body (see ``antiphon.transport.expecting``), so where it is
        kept back all of this waits until it is wanted, or until the answer has begun.
        """
        if isinstance(request.body, ExpectedBody):
            await request.body.wanted.wait()
        await super().handle_messages(request, receive)

    async def handle_request(self, request: Request, send: ASGISendCallable) -> None:
        """Answer. An event stream has no time limit, whichever response class carries it."""
        sources: list[EventSource] = []
        _unsent.set(sources)
        try:
            try:
                response = await self.app.handle_request(request)
            except Exception as error:
                response = await _handle_exception(self.app, error)
            timeout: float | None = self.app.config["RESPONSE_TIMEOUT"]
            if response.mimetype == EVENT_STREAM:
                timeout = None
            elif isinstance(response, Response) and response.timeout is not Ellipsis:
                timeout = response.timeout
            # The host sees a response that did not end, and resets it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._send_response(send, response)
        finally:
            for source in sources:
                await source.aclose()

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        # Not every host has extensions.
        extensions: Mapping[str, Any] = self.scope.get("extensions") or {}
        sink: FrameSink | None = extensions.get(FRAMES)
        source = response.source if isinstance(response, EventStreamResponse) else None
        if sink is None or not isinstance(source, FrameSource):
            await super()._send_response(send, response)
            return
        await sink.start(response.status_code, encode_headers(response.headers))
        source.attach(sink)
        await sink.finished()


def _answering(send: ASGISendCallable, begun: asyncio.Event) -> ASGISendCallable:
    """``send``, that tells when the answer has begun."""

    async def tell(message: ASGISendEvent) -> None:
        await send(message)
        begun.set()

    return tell


RECANCEL_S = 0.01


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel the tasks, again and again until they have ended.

    Once is not enough: a cancellation that comes at the moment at which the awaited thing is done
    can be lost on the way (CPython's ``asyncio.wait_for`` before 3.12 does that), and the task goes
    on to its next wait.
    """
    open_tasks = tasks
    while open_tasks:
        for task in open_tasks:
            task.cancel()
        _, open_tasks = await asyncio.wait(open_tasks, timeout=RECANCEL_S)
