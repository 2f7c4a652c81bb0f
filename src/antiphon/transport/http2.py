"""HTTP/2: Hypercorn's protocol with a send pass and a stream table of our own.

What differs from Hypercorn's, and why a client can tell:

* data that still arrives after an early answer is acknowledged and dropped, up to a limit;
* an answer that breaks off is reset with INTERNAL_ERROR, so that nobody waits for its end;
* a stream above the limit is refused alone, and may be retried (RFC 9113, section 8.7);
* PRIORITY frames are ignored (section 5.3.2) and no number of requests ends a connection;
* a client that says GOAWAY without an error still gets its answers (section 6.8);
* a handler waits while the client's windows are shut;
* ``100 Continue`` is sent when the handler wants the body.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import h2.events
import h2.exceptions
from h2.errors import ErrorCodes
from hypercorn.events import Updated
from hypercorn.protocol.events import (
    Body,
    EndBody,
    InformationalResponse,
    Request,
    Response,
    StreamClosed,
    Trailers,
)
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.utils import filter_pseudo_headers

from antiphon.transport.bare_errors import dressed, is_bare
from antiphon.transport.buffer_sink import BufferSink, with_sink
from antiphon.transport.http2_reading import Reading
from antiphon.transport.http2_rules import without_hops
from antiphon.transport.http2_sending import Outgoing
from antiphon.transport.wire import Wire


class AntiphonH2(Reading):
    """One HTTP/2 connection."""

    def __init__(self, *connection: Any, wire: Wire) -> None:
        super().__init__(*connection)
        self._outgoing = Outgoing(self.connection, wire, self.config, self._failed)
        self._wire = wire

    @property
    def owes(self) -> bool:
        """Whether something is queued until the client takes it."""
        return self._outgoing.owes

    def drop(self) -> None:
        """End the connection, whatever is unsaid."""
        self._wire.abort()

    async def say_goodbye(self, error_code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Send GOAWAY, unless one has been sent or received already, after what is ready."""
        await super().say_goodbye(error_code)
        self._outgoing.flush()

    async def send_task(self) -> None:
        """Hypercorn's has nothing to do: whoever has something to send marks the connection."""

    async def _flush(self) -> None:
        """Hypercorn's would write each frame by itself, and wait for the socket."""
        self._outgoing.mark()

    def _failed(self) -> None:
        self.abandon()
        self.task_group.spawn(self._end, ErrorCodes.INTERNAL_ERROR)

    async def stream_send(self, event: StreamEvent) -> None:
        """What the application sends on a stream."""
        match event:
            case Body() | EndBody() | Trailers():
                await self._queue(event)
            case StreamClosed():
                await self._answered(event.stream_id)
            case Response() if is_bare(event):
                response, body = dressed(event, self.config)
                await super().stream_send(response)
                await self._queue(body)
            case Response() | InformationalResponse():
                event.headers[:] = without_hops(event.headers)
                await super().stream_send(event)
            case _:
                await super().stream_send(event)

    async def _queue(self, event: Body | EndBody | Trailers) -> None:
        buffer = self._outgoing.buffer_of(event.stream_id)
        self._outgoing.touch(event.stream_id)
        match event:
            case Body():
                await buffer.push(event.data)
            case Trailers():
                buffer.trailers = event.headers
            case EndBody():
                buffer.end()
                await buffer.finished()

    async def _answered(self, stream_id: int) -> None:
        """The application is done with the stream, in whichever state it leaves it."""
        buffer = self._outgoing.buffers.get(stream_id)
        stream = self.connection.streams.get(stream_id)
        if buffer is not None and stream is not None and not stream.closed and not self.closed:
            if buffer.sent_end:
                self._unread.begin(stream_id)
                # A client may stop before the length that it declared; h2 would end the connection.
                stream._expected_content_length = None
            else:
                self.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        # The caller is the handler, and the end of its stream may cancel it. So what would wait
        # is left to others.
        await self._close_stream(stream_id)
        self._settle()

    def _settle(self) -> None:
        self._outgoing.mark()
        if self.idle and not self.closed:
            self.task_group.spawn(self.send, Updated(idle=True))

    def _stalled(self, stream_id: int) -> None:
        """The client takes nothing of this stream."""
        self.config.counted.stalled_readers += 1
        self._break_off(stream_id, ErrorCodes.CANCEL)
        self.task_group.spawn(self._close_stream, stream_id)

    def _break_off(
        self, stream_id: int, error_code: ErrorCodes = ErrorCodes.INTERNAL_ERROR
    ) -> None:
        """The answer does not go on to its end."""
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self.connection.reset_stream(stream_id, error_code)
        self._outgoing.forget(stream_id)
        self._outgoing.mark()

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        stream_id, pseudo = request.stream_id, dict(request.headers)
        buffer = self._outgoing.open(stream_id, partial(self._stalled, stream_id))
        touch = partial(self._outgoing.touch, stream_id)
        sink = BufferSink("h2", buffer, touch, partial(self._break_off, stream_id))
        stream = HTTPStream(
            with_sink(self._application(request, pseudo[b":path"]), sink),
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            stream_id,
        )
        self.streams[stream_id] = stream
        await stream.handle(
            Request(
                stream_id=stream_id,
                headers=filter_pseudo_headers(request.headers),
                http_version="2",
                method=pseudo[b":method"].decode().upper(),
                raw_path=pseudo[b":path"],
                state=self.connection_state,
            )
        )

    async def _window_updated(self, stream_id: int | None) -> None:
        self._outgoing.window_opened(stream_id)

    async def _close_stream(self, stream_id: int) -> None:
        """Hypercorn's would keep what is queued for the stream, and the window of its body."""
        self._outgoing.forget(stream_id)
        self._uptake.end(stream_id)
        await super()._close_stream(stream_id)

    async def _close(self) -> None:
        """The connection is gone: every handler hears of it and nobody waits any more."""
        self.abandon()
        for stream_id in list(self.streams):
            await self._close_stream(stream_id)

    def abandon(self) -> None:
        """Nothing more is sent: nobody waits for that any more."""
        self.closed = True
        self._outgoing.abandon()
