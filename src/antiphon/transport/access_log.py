"""What is told of each request when it has ended, whichever way its answer took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import attrs
from hypercorn.typing import (
    AppWrapper,
    ASGIFramework,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
    WebsocketScope,
)

from antiphon.transport.accepting import PEER
from antiphon.transport.forwarded import ip_of
from antiphon.transport.limits import LIMITED
from antiphon.transport.pace import GIVEN
from antiphon.transport.settings import REQUEST_ID
from antiphon.transport.sink import FRAMES, FrameSink, Headers
from antiphon.transport.unix_socket import Peer

_REQUEST_ID = REQUEST_ID.encode()


@attrs.define
class Entry:
    """What is told of one request."""

    client: str | None
    """Its address; None on a socket in the file system."""
    peer: Peer | None
    """The process, on such a socket and where the system tells it."""
    method: str
    path: str
    """Without its query, which may hold what is nobody's business."""
    id: str | None = None
    status: int | None = None
    """None where the client had gone before it was answered."""
    bytes: int = 0
    """Of the body that was sent."""
    seconds: float = 0.0
    """From the end of the header block to the end of the answer."""

    def began(self, status: int, headers: Headers) -> None:
        """The answer begins."""
        self.status = status
        for name, value in headers:
            if name.lower() == _REQUEST_ID:
                self.id = value.decode("latin-1")

    def note(self, message: ASGISendEvent) -> None:
        """A message of the answer."""
        kind, event = message["type"], cast("Mapping[str, Any]", message)
        if kind.endswith("http.response.start"):
            self.began(event["status"], event["headers"])
        elif kind.endswith("http.response.body"):
            self.bytes += len(event.get("body", b""))

    def correct(self, given: Sequence[ASGISendEvent]) -> None:
        """What the host has ``given`` instead of the application's answer, if it has."""
        if given:
            self.bytes = 0
            for message in given:
                self.note(message)


class AccessLog:
    """``app``, with an ``Entry`` given to ``tell`` at the end of each of its requests."""

    def __init__(
        self,
        app: ASGIFramework,
        tell: Callable[[Entry], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._tell = tell
        self._clock = clock

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """As ASGI; handshakes of websockets are requests as well."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        entry = _entry_of(scope)
        extensions = cast("dict[str, Any]", scope.get("extensions") or {})
        if (sink := extensions.get(FRAMES)) is not None:
            counting: Any = CountingSink(sink, entry)
            scope["extensions"] = {**extensions, FRAMES: counting}

        async def note(message: ASGISendEvent) -> None:
            entry.note(message)
            await send(message)

        begun = self._clock()
        try:
            await self._app(scope, receive, note)
        finally:
            entry.seconds = self._clock() - begun
            entry.correct(extensions.get(LIMITED, {}).get(GIVEN, ()))
            self._tell(entry)


def _entry_of(scope: HTTPScope | WebsocketScope) -> Entry:
    return Entry(
        client=str(ip_of(scope["client"][0])) if scope["client"] else None,
        peer=PEER.get(),
        method=scope["method"] if scope["type"] == "http" else "GET",
        path=scope["raw_path"].partition(b"?")[0].decode("latin-1"),
    )


def behind(app: AppWrapper, front: Callable[[ASGIFramework], ASGIFramework]) -> AppWrapper:
    """``app``, which answers in the place of the application, behind the same ``front``."""

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        async def inner(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            await app(scope, receive, send, sync_spawn, call_soon)

        await front(inner)(scope, receive, send)

    return call


class CountingSink:
    """``sink``, whose bytes are those of ``entry``."""

    def __init__(self, sink: FrameSink, entry: Entry) -> None:
        self._sink = sink
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    async def start(self, status: int, headers: Headers) -> None:
        """As of the sink."""
        headers = list(headers)
        self._entry.began(status, headers)
        await self._sink.start(status, headers)

    def offer(self, data: bytes) -> bool:
        """As of the sink."""
        if not self._sink.offer(data):
            return False
        self._entry.bytes += len(data)
        return True
