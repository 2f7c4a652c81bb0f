"""The frame sink of both protocols: a send buffer, and what tells its connection to write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from hypercorn.typing import (
    AppWrapper,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)

from antiphon.transport.send_buffer import SendBuffer
from antiphon.transport.sink import FRAMES, Headers

log = logging.getLogger("antiphon.transport")


class BufferSink:
    """A ``FrameSink`` over ``buffer``.

    ``touch`` is called when the buffer has something to write, ``reset`` to break off.
    """

    __slots__ = ("_buffer", "_reset", "_send", "_touch", "protocol")

    def __init__(
        self,
        protocol: str,
        buffer: SendBuffer,
        touch: Callable[[], None],
        reset: Callable[[], None],
    ) -> None:
        self.protocol = protocol
        self._buffer = buffer
        self._touch = touch
        self._reset = reset
        self._send: ASGISendCallable | None = None

    @property
    def queued(self) -> int:
        return self._buffer.size

    @property
    def room(self) -> int:
        return self._buffer.room

    @property
    def detached(self) -> bool:
        return self._buffer.detached

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head."""
        send, self._send = self._send, None
        if send is None:
            raise RuntimeError("the answer has begun")
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})

    def offer(self, data: bytes) -> bool:
        """Queue ``data`` if there is room."""
        if self._send is not None:
            raise RuntimeError("the head comes first")
        if self._buffer.offer(data):
            self._touch()
            return True
        return False

    def end(self) -> None:
        """The body ends after what is queued."""
        if self._send is not None:
            raise RuntimeError("the head comes first")
        self._buffer.end()
        self._touch()

    def reset(self) -> None:
        """Break off."""
        self._reset()

    def on_ready(self, callback: Callable[[], None]) -> None:
        """``callback`` is called when a detached sink has room again."""
        self._buffer.on_ready(partial(self._tell, callback))

    def on_closed(self, callback: Callable[[], None]) -> None:
        """``callback`` is called once, when the stream ends before its body has."""
        self._buffer.on_closed(partial(self._tell, callback))

    def _tell(self, callback: Callable[[], None]) -> None:
        """A callback that fails costs its own stream alone."""
        try:
            callback()
        except Exception:
            log.exception("a reader of an event stream failed")
            self._reset()

    async def finished(self) -> None:
        """Wait until the end has been written, or can no longer be."""
        await self._buffer.finished()

    def begin(self, send: ASGISendCallable) -> None:
        """The request has come to the application, which answers it by ``send`` or by this sink."""
        self._send = send

    @property
    def started(self) -> bool:
        """Whether the answer is given by this sink."""
        return self._send is None


def with_sink(app: AppWrapper, sink: BufferSink) -> AppWrapper:
    """``app`` for one request, whose answer may be given by ``sink``."""

    async def call(
        scope: Scope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        sync_spawn: Callable[..., Any],
        call_soon: Callable[..., Any],
    ) -> None:
        async def answer(message: ASGISendEvent) -> None:
            if sink.started:
                raise RuntimeError("the body of this answer goes through its sink")
            await send(message)

        if scope["type"] == "http" and scope["method"] != "HEAD":
            sink.begin(send)
            extensions: dict[str, Any] = scope["extensions"]
            extensions[FRAMES] = sink
            await app(scope, receive, answer, sync_spawn, call_soon)
        else:
            await app(scope, receive, send, sync_spawn, call_soon)

    return call
