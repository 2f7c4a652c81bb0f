"""HTTP/1.1: Hypercorn's protocol, without its waits in the read loop.

What differs from Hypercorn's, and why a client can tell:

* a request sent while a response runs is kept, and reading goes on, so that a client that leaves
  is noticed;
* after an early answer the rest of the body is read and dropped and the connection stays, and
  one that cannot stay ends for sending first, so that the answer can be read;
* ``100 Continue`` is sent when the application wants the body;
* the status line has its reason phrase;
* what is no HTTP is refused with the error object that every other error has.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Body, Data, EndBody, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.typing import H11SendableEvent

from antiphon.errors import HeadersTooLarge, RequestTimeout
from antiphon.transport.bare_errors import dressed, error_for, head_and_body, is_bare
from antiphon.transport.buffer_sink import with_sink
from antiphon.transport.deadline import Deadline
from antiphon.transport.expecting import asking
from antiphon.transport.guarding import guarded
from antiphon.transport.http1_rules import reason, settings_are_sound
from antiphon.transport.http1_sending import Frames
from antiphon.transport.settings import READ_AHEAD, UNREAD_BODY, HostConfig
from antiphon.transport.unread import Dropping
from antiphon.transport.wire import Wire


class AntiphonH1(H11Protocol):
    """One HTTP/1.1 connection."""

    config: HostConfig

    def __init__(self, *connection: Any, wire: Wire) -> None:
        super().__init__(*connection)
        self._frames = Frames(self.config, wire)
        self._handling = asyncio.Lock()
        self._paused = False
        self._closed = False
        self._may_switch = True
        self._refused = False
        self._dropped = 0
        self._declared = 0
        self._answered_last = False
        """Whether no other answer follows on this connection."""
        self._deaf = False
        """Whether what arrives is dropped as it is."""
        self._served = self.app
        self._header_due = Deadline(self.config.limits.header_timeout, self._header_late)

    async def handle(self, event: Event) -> None:
        """Bytes from the client, or the end of the connection."""
        if isinstance(event, Closed):
            self._closed = True
            self._header_due.watch(False)
            await self.can_read.set()
            await super().handle(event)
            return
        if isinstance(event, RawData):
            if self._deaf:
                await self._drop(len(event.data))
            else:
                self.connection.receive_data(event.data)
                await self._handle_events()
            if self.is_dropping:
                await self.send(Dropping(last=self._answered_last))
        if self._paused and len(self.connection.trailing_data[0]) > READ_AHEAD:
            await self.can_read.clear()
            await self.can_read.wait()

    async def stream_send(self, event: StreamEvent) -> None:
        """What the application sends. After the end of the connection it is dropped."""
        is_late = self._closed or self._deaf or (self._refused and not isinstance(event, EndBody))
        if is_late and not isinstance(event, StreamClosed):
            # A handler that never waits for anything else could not be cancelled.
            await asyncio.sleep(0)
            return
        if isinstance(event, Response) and is_bare(event):
            self._refused = True  # The application may accept a handshake that the host refuses.
            response, event = dressed(event, self.config, (b"connection", b"close"))
            await super().stream_send(response)
        await super().stream_send(event)
        if isinstance(event, EndBody) and self._refused:
            await self.send(Closed())  # Hypercorn forgets a handshake that it has refused.

    def abandon(self) -> None:
        """Nothing more is sent: nobody waits for that any more."""
        self._closed = True
        self._frames.close()

    async def _close_stream(self) -> None:
        self._frames.close()
        await super()._close_stream()

    async def _handle_events(self) -> None:
        async with self._handling:
            while not self._closed and await self._handle_event():
                pass
        self._header_due.watch(self._is_mid_header)

    async def _handle_event(self) -> bool:
        """Take one event off h11; False when there is no more to do for now."""
        try:
            event = self.connection.next_event()
        except h11.RemoteProtocolError as error:
            self._count(error)
            if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                await self._send_error_response(error.error_status_hint)
            if self.connection.our_state in {h11.DONE, h11.MUST_CLOSE}:
                await self._stop_listening()
            else:
                await self.send(Closed())
            return False
        self._paused = event is h11.PAUSED
        match event:
            case h11.Request():
                # An HTTP/2 preface looks like a request and is none.
                await self._check_protocol(event)
                await self.send(Updated(idle=False))
                self._declared = int(dict(event.headers).get(b"content-length", 0))
                app = guarded(self._served, self.config, event.target, event.headers, _nothing)
                waits = self.connection.they_are_waiting_for_100_continue
                app = asking(app, self._ask_for_body) if waits else app
                self.app = with_sink(app, self._frames.begin(self.connection, event))
                await self._create_stream(event)
            case h11.Data():
                return await self._body(event)
            case h11.EndOfMessage():
                await self._end_of_request()
            case Data() if self.stream is not None:  # of a websocket
                await self.stream.handle(event)
            case _:
                return False
        return True

    @property
    def _is_mid_header(self) -> bool:
        """Whether a request has begun whose header block has not ended."""
        if self._closed or self._deaf or self.connection.their_state is not h11.IDLE:
            return False
        return bool(self.connection.trailing_data[0])

    def _header_late(self) -> None:
        self.task_group.spawn(self._refuse_late_header)

    async def _refuse_late_header(self) -> None:
        async with self._handling:
            if self._is_mid_header:
                self.config.counted.slow_headers += 1
                await self._send_error_response(RequestTimeout.status)
                await self._stop_listening()

    def _count(self, error: h11.RemoteProtocolError) -> None:
        if error.error_status_hint == HeadersTooLarge.status:
            self.config.counted.large_headers += 1
        else:
            self.config.counted.protocol_errors += 1

    async def _body(self, event: h11.Data) -> bool:
        if self.stream is not None:
            await self.stream.handle(Body(stream_id=STREAM_ID, data=bytes(event.data)))
            return True
        return await self._drop(len(event.data))

    async def _drop(self, size: int) -> bool:
        """Count ``size`` bytes that nobody reads; False when they are too many."""
        self._dropped += size
        if self._dropped > UNREAD_BODY:
            self.config.counted.unread_bodies += 1
            await self.send(Closed())
            return False
        return True

    @property
    def is_answering(self) -> bool:
        """Whether a request waits for its answer, or for the rest of it."""
        return self.stream is not None

    @property
    def is_dropping(self) -> bool:
        """Whether what arrives next belongs to a request that has been answered."""
        return self._deaf or (self.stream is None and self.connection.their_state is h11.SEND_BODY)

    @property
    def _is_last(self) -> bool:
        """Whether the answer that begins now has to be the last one.

        The request's body is longer than what is dropped to keep a connection. Or nobody can tell
        whether it will come: a client that waits for ``100 Continue`` may send it after the answer
        or leave it out, and then the next request would be taken for the body.
        """
        return self.connection.they_are_waiting_for_100_continue or (
            self.connection.their_state is h11.SEND_BODY and self._declared > UNREAD_BODY
        )

    async def _ask_for_body(self) -> None:
        if self.connection.they_are_waiting_for_100_continue:
            headers = self.config.response_headers("h11")
            await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=headers))

    async def _stop_listening(self) -> None:
        """The last answer has been sent, and what else arrives is not even parsed."""
        self._deaf = self._answered_last = True
        await self._close_stream()
        await self.send(Dropping(last=True))

    async def _end_of_request(self) -> None:
        if self.stream is not None:
            await self.stream.handle(EndBody(stream_id=STREAM_ID))
        elif not self._answered_last:
            if self.connection.our_state is h11.DONE:
                await self._next_request()
        elif self.connection.trailing_data[0]:
            await self._stop_listening()
        else:
            await self.send(Closed())

    async def _maybe_recycle(self) -> None:
        """The application is done with the request, in whichever state it leaves it."""
        await self._close_stream()
        if self._deaf:
            return
        ours, theirs = self.connection.our_state, self.connection.their_state
        ends = ours is not h11.DONE or self.context.terminated.is_set()
        if theirs is h11.SEND_BODY and ours in {h11.DONE, h11.MUST_CLOSE}:
            self._answered_last = ends
            await self.send(Dropping(last=ends))
        elif ends or theirs is not h11.DONE:
            await self.can_read.set()
            await self.send(Closed())
        else:
            await self._next_request()
            if self.connection.trailing_data[0] and not self._closed:
                # Only the reader can change the protocol, and it sees no request from here.
                self._may_switch = False
                self.task_group.spawn(self._handle_events)

    async def _next_request(self) -> None:
        """Begin a new cycle."""
        self.connection.start_next_cycle()
        self._paused = False
        self._dropped = 0
        await self.can_read.set()
        await self.send(Updated(idle=True))

    async def _check_protocol(self, event: h11.Request) -> None:
        if self._may_switch and not self.ssl and settings_are_sound(event):
            await super()._check_protocol(event)

    async def _send_error_response(self, status_code: int) -> None:
        headers, body = head_and_body(error_for(status_code), self.config)
        headers += [(b"connection", b"close"), *self.config.response_headers("h11")]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        if isinstance(event, h11.Response) and (
            self._is_last or event.status_code == RequestTimeout.status
        ):
            event = h11.Response(
                status_code=event.status_code,
                headers=[*event.headers.raw_items(), (b"connection", b"close")],
                reason=event.reason,
            )
        if isinstance(event, h11.Response | h11.InformationalResponse) and not event.reason:
            event = type(event)(
                status_code=event.status_code,
                headers=list(event.headers.raw_items()),
                reason=reason(event.status_code),
            )
        await super()._send_h11_event(event)


def _nothing() -> None:
    """What is left of a slow body is dropped as that of any early answer."""
