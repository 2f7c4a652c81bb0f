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

import logging
from typing import Any

import h2.events
import h2.exceptions
from h2.errors import ErrorCodes
from hypercorn.events import Closed, Updated
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
from antiphon.transport.http2_reading import Reading
from antiphon.transport.http2_rules import without_hops
from antiphon.transport.send_buffer import SendBuffer

log = logging.getLogger("antiphon.transport")


class AntiphonH2(Reading):
    """One HTTP/2 connection."""

    def __init__(self, *connection: Any) -> None:
        super().__init__(*connection)
        self._buffers: dict[int, SendBuffer] = {}
        self._gone = SendBuffer()
        """Takes the rest of an answer whose stream is gone."""
        self._gone.close()
        self._ready: dict[int, None] = {}
        """Streams to look at in the next send pass, in order."""
        self._settled = True
        """Whether the end of the last answer has been written and accounted for."""

    @property
    def owes(self) -> bool:
        """Whether something is queued until the client takes it."""
        return any(map(len, self._buffers.values()))

    async def send_task(self) -> None:
        """Frame and write what is ready, until the connection closes."""
        try:
            while not self.closed:
                if self._settled and not self._ready:
                    await self.has_data.wait()
                    await self.has_data.clear()
                done = self._send_pass()
                await self._flush()
                for buffer in done:
                    buffer.close()
                if not self._settled:
                    self._settled = True
                    await self.send(Updated(idle=self.idle))
        except Exception:
            log.exception("sending on an HTTP/2 connection failed")
            await self.say_goodbye(ErrorCodes.INTERNAL_ERROR)
            await self.send(Closed())
        finally:
            self._abandon()

    def _send_pass(self) -> list[SendBuffer]:
        """One frame of every ready stream that has a window; the buffers that are done."""
        ready, self._ready = self._ready, {}
        sent = [self._send_frame(stream_id) for stream_id in ready]
        return [buffer for buffer in sent if buffer is not None]

    def _send_frame(self, stream_id: int) -> SendBuffer | None:
        """The stream's next frame; its buffer if that was the last one."""
        buffer = self._buffers.get(stream_id)
        if buffer is None or buffer.sent_end:
            return None
        try:
            window = min(
                self.connection.local_flow_control_window(stream_id),
                self.connection.max_outbound_frame_size,
            )
            # A window can be negative: the client may have made its first one smaller.
            data = buffer.pop(max(0, window))
            if buffer.complete and buffer.trailers is None:
                self.connection.send_data(stream_id, data, end_stream=True)
                buffer.sent_end = True
            elif data:
                self.connection.send_data(stream_id, data)
            if buffer.complete and not buffer.sent_end:
                self.connection.send_headers(stream_id, buffer.trailers or [], end_stream=True)
                buffer.sent_end = True
        except h2.exceptions.ProtocolError:
            # The client has reset the stream, and the event that says so is on its way to us.
            return buffer
        if buffer.sent_end:
            return buffer
        if data and len(buffer):
            self._ready[stream_id] = None
        return None

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
        buffer = self._buffers.get(event.stream_id, self._gone)
        self._ready[event.stream_id] = None
        await self.has_data.set()
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
        buffer = self._buffers.get(stream_id)
        stream = self.connection.streams.get(stream_id)
        if buffer is not None and stream is not None and not stream.closed and not self.closed:
            if buffer.sent_end:
                self._unread.begin(stream_id)
                # A client may stop before the length that it declared; h2 would end the connection.
                stream._expected_content_length = None
            else:
                self.connection.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        # The caller is the handler, and the end of its stream may cancel it. So what would wait
        # is left to the sending task.
        await self._close_stream(stream_id)
        self._settled = False

    def _settle(self) -> None:
        self._settled = False
        self.task_group.spawn(self.has_data.set)

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        stream_id, pseudo = request.stream_id, dict(request.headers)
        stream = HTTPStream(
            self._application(request, pseudo[b":path"]),
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
        self._buffers[stream_id] = SendBuffer()
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
        self._ready |= dict.fromkeys(self._buffers) if not stream_id else {stream_id: None}
        await self.has_data.set()

    async def _close_stream(self, stream_id: int) -> None:
        if (buffer := self._buffers.pop(stream_id, None)) is not None:
            buffer.close()
        self._uptake.end(stream_id)
        await super()._close_stream(stream_id)

    async def _close(self) -> None:
        """The connection is gone: every handler hears of it and nobody waits any more."""
        self._abandon()
        for stream_id in list(self.streams):
            await self._close_stream(stream_id)
        await self.has_data.set()

    def _abandon(self) -> None:
        self.closed = True
        for buffer in self._buffers.values():
            buffer.close()
