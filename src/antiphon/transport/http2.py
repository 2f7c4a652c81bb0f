"""HTTP/2: Hypercorn's protocol with a send pass and a stream table of our own.

What differs from Hypercorn's, and why a client can tell:

* data that still arrives after an early answer is acknowledged and dropped, up to a limit;
* an answer that breaks off is reset with INTERNAL_ERROR, so that nobody waits for its end;
* a stream above the limit is refused alone, and may be retried (RFC 9113, section 8.7);
* PRIORITY frames are ignored (section 5.3.2) and no number of requests ends a connection;
* a handler waits while the client's windows are shut;
* ``100 Continue`` is sent when the handler wants the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import h2.events
import h2.exceptions
from h2.connection import ConnectionState
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hypercorn.events import Closed, Event, RawData, Updated
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
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.utils import filter_pseudo_headers

from antiphon.transport.bare_errors import dressed, is_bare
from antiphon.transport.buffer_sink import BufferSink, with_sink
from antiphon.transport.expecting import asking, expects_continue
from antiphon.transport.floods import Floods
from antiphon.transport.http2_connection import ServerH2
from antiphon.transport.http2_rules import malformed
from antiphon.transport.http2_sending import Outgoing
from antiphon.transport.settings import HostConfig
from antiphon.transport.unread import UnreadStreams
from antiphon.transport.wire import Wire

log = logging.getLogger("antiphon.transport")


class AntiphonH2(H2Protocol):
    """One HTTP/2 connection."""

    config: HostConfig

    def __init__(self, *connection: Any, wire: Wire) -> None:
        super().__init__(*connection)
        limits, counted = self.config.limits, self.config.counted
        self._floods = Floods(limits, counted, asyncio.get_running_loop().time)
        self.connection = ServerH2(limits, counted, self._floods)
        self._outgoing = Outgoing(self.connection, wire, self.config, self._failed)
        self._unread = UnreadStreams(self._give_up)

    @property
    def is_dropping(self) -> bool:
        """Whether bodies of answered requests may still come. The connection may be idle then."""
        return bool(self._unread)

    async def handle(self, event: Event) -> None:
        """Bytes from the client, or the end of the connection."""
        if isinstance(event, Closed):
            await self._close()
        if isinstance(event, RawData):
            try:
                await self._handle_events(self.connection.receive_data(event.data))
            except h2.exceptions.ProtocolError as error:
                self._floods.tell(error)
                await self.say_goodbye(error.error_code)
                await self.send(Closed())

    async def say_goodbye(self, error_code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Send GOAWAY, unless one has been sent or received already."""
        if self.connection.state_machine.state is not ConnectionState.CLOSED:
            self.connection.close_connection(error_code)
        self._outgoing.flush()

    async def send_task(self) -> None:
        """Hypercorn's has nothing to do: whoever has something to send marks the connection."""

    async def _flush(self) -> None:
        self._outgoing.mark()

    def _failed(self) -> None:
        self.abandon()
        self.task_group.spawn(self._fail)

    async def _fail(self) -> None:
        await self.say_goodbye(ErrorCodes.INTERNAL_ERROR)
        await self.send(Closed())

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
        """An answer has ended: the connection may be idle, and have something to say."""
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

    def _give_up(self, stream_id: int) -> None:
        """Take no more of a body that nobody reads (section 8.1)."""
        self.connection.reset_stream(stream_id, ErrorCodes.NO_ERROR)
        self._settle()

    async def _handle_events(self, events: Sequence[h2.events.Event]) -> None:
        for event in events:
            match event:
                case h2.events.RequestReceived():
                    await self._request(event)
                case h2.events.DataReceived():
                    await self._data(event)
                case h2.events.StreamEnded():
                    if (stream := self.streams.get(event.stream_id)) is not None:
                        await stream.handle(EndBody(stream_id=event.stream_id))
                    elif self._unread.end(event.stream_id):
                        await self.send(Updated(idle=self.idle))
                case h2.events.StreamReset():
                    self._unread.end(event.stream_id)
                    await self._close_stream(event.stream_id)
                    await self.send(Updated(idle=self.idle))
                case h2.events.WindowUpdated():
                    await self._window_updated(event.stream_id)
                case h2.events.RemoteSettingsChanged():
                    if SettingCodes.INITIAL_WINDOW_SIZE in event.changed_settings:
                        await self._window_updated(None)
                case h2.events.ConnectionTerminated():
                    await self.send(Closed())
        await self._flush()

    async def _request(self, event: h2.events.RequestReceived) -> None:
        limit = self.config.h2_max_concurrent_streams
        if self.context.terminated.is_set() or len(self.streams) >= limit:
            self.connection.reset_stream(event.stream_id, ErrorCodes.REFUSED_STREAM)
        elif (error := malformed(event)) is not None:
            self.connection.reset_stream(event.stream_id, error)
        else:
            if self._unread and len(self.streams) + len(self._unread) >= limit:
                self._unread.lose_oldest()
            await self._create_stream(event)
            await self.send(Updated(idle=False))

    async def _data(self, event: h2.events.DataReceived) -> None:
        if (stream := self.streams.get(event.stream_id)) is not None:
            await stream.handle(Body(stream_id=event.stream_id, data=event.data))
        else:
            self._unread.drop(event.stream_id, event.flow_controlled_length)
        self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        stream_id, pseudo = request.stream_id, dict(request.headers)
        app = self.app
        if request.stream_ended is None and expects_continue(request.headers):
            go_on = InformationalResponse(stream_id, headers=[], status_code=100)
            app = asking(app, partial(self.stream_send, go_on))
        buffer = self._outgoing.open(stream_id, partial(self._stalled, stream_id))
        touch = partial(self._outgoing.touch, stream_id)
        sink = BufferSink("h2", buffer, touch, partial(self._break_off, stream_id))
        stream = HTTPStream(
            with_sink(app, sink),
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
        self._outgoing.forget(stream_id)
        await super()._close_stream(stream_id)

    async def _close(self) -> None:
        """The connection is gone: every handler hears of it and nobody waits any more."""
        self.abandon()
        self._unread.clear()
        for stream_id in list(self.streams):
            await self._close_stream(stream_id)

    def abandon(self) -> None:
        """Nothing more is sent: nobody waits for that any more."""
        self.closed = True
        self._outgoing.abandon()
