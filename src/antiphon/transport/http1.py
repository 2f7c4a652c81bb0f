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
from hypercorn.protocol.events import Body, Data, EndBody
from hypercorn.protocol.h11 import (
    STREAM_ID,
    H2CProtocolRequiredError,
    H2ProtocolAssumedError,
)

from antiphon.errors import HeadersTooLarge, RequestTimeout
from antiphon.transport.bare_errors import refusing
from antiphon.transport.buffer_sink import with_sink
from antiphon.transport.deadline import Deadline
from antiphon.transport.expecting import asking
from antiphon.transport.guarding import guarded
from antiphon.transport.http1_answering import Answering
from antiphon.transport.http1_rules import (
    OTHER_VERSION,
    is_framed_once,
    is_spoken,
    settings_are_sound,
)
from antiphon.transport.settings import READ_AHEAD, UNREAD_BODY
from antiphon.transport.unread import Dropping
from antiphon.transport.wire import Wire

AHEAD_S = 1.0
"""What an answer gets to end while the client has sent too much ahead."""


class AntiphonH1(Answering):
    """One HTTP/1.1 connection."""

    def __init__(self, *connection: Any, wire: Wire) -> None:
        super().__init__(*connection, wire=wire)
        self._handling = asyncio.Lock()
        self._may_switch = True
        self._dropped = 0
        self._answered_last = False
        """Whether no other answer follows on this connection."""
        self._served = self.app
        self._header_due = Deadline(self.config.limits.header_timeout, self._header_late)

    async def handle(self, event: Event) -> None:
        """Bytes from the client, or the end of the connection.

        Hypercorn's waits here until a running answer has ended, and does not see its client leave.
        """
        if isinstance(event, Closed):
            self._closed = True
            self._header_due.watch(False)
            await self.can_read.set()
            await super().handle(event)
            return
        if isinstance(event, RawData):
            if self._deaf or self._overrun:
                await self._drop(len(event.data))
            else:
                self.connection.receive_data(event.data)
                await self._handle_events()
            if self.is_dropping:
                await self.send(Dropping(last=self._answered_last))
            await self._hold_back()

    async def _hold_back(self) -> None:
        """Read no more while too much waits for its turn and answers end one after another.

        A client behind all that can only be seen to leave by reading on. So that goes on when no
        answer has ended for a while, and costs the connection all but the answer that runs.
        """
        while not (self._closed or self._deaf or self._overrun) and self._ahead > READ_AHEAD:
            await self.can_read.clear()
            try:
                await asyncio.wait_for(self.can_read.wait(), AHEAD_S)
            except TimeoutError:
                theirs = self.connection.their_state
                is_read = theirs is h11.SEND_BODY and self.stream is not None
                self._overrun = not (is_read or theirs is h11.IDLE)

    @property
    def _ahead(self) -> int:
        """Bytes that have been read and not been parsed."""
        return len(self.connection.trailing_data[0])

    async def _handle_events(self) -> None:
        """Hypercorn's asks for every body, drops none, and gives a header block all the time."""
        async with self._handling:
            while not self._closed and await self._handle_event():
                pass
        self._header_due.watch(self._is_mid_header)
        await self.can_read.set()

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
        match event:
            case h11.Request():
                # An HTTP/2 preface looks like a request and is none.
                await self._check_protocol(event)
                await self.send(Updated(idle=False))
                self._declared = int(dict(event.headers).get(b"content-length", 0))
                self._is_odd = not (is_spoken(event) and is_framed_once(event))
                served = self._served if is_spoken(event) else refusing(OTHER_VERSION, self.config)
                app = guarded(served, self.config, event.target, event.headers, _nothing)
                waits = self.connection.they_are_waiting_for_100_continue
                app = asking(app, self._ask_for_body) if waits else app
                self.app = with_sink(app, self._frames.begin(self.connection, event))
                await self._create_stream(event)
            case h11.Data():
                return await self._body(event)
            case h11.EndOfMessage():
                await self._end_of_request()
            case Data() if self.stream is not None:  # of a websocket
                await self._of_websocket(event)
            case _:
                return False
        return True

    @property
    def _is_mid_header(self) -> bool:
        """Whether a request has begun whose header block has not ended."""
        if self._closed or self._deaf or self.connection.their_state is not h11.IDLE:
            return False
        return bool(self._ahead)

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
    def is_dropping(self) -> bool:
        """Whether what arrives next belongs to a request that has been answered."""
        return self._deaf or (self.stream is None and self.connection.their_state is h11.SEND_BODY)

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
        elif self._ahead:
            await self._stop_listening()
        else:
            await self.send(Closed())

    async def _maybe_recycle(self) -> None:
        """The application is done with the request, in whichever state it leaves it.

        Hypercorn's closes the socket after an early answer, which is lost with that.
        """
        await self._close_stream()
        if self._deaf:
            return
        ours, theirs = self.connection.our_state, self.connection.their_state
        is_whole = ours in {h11.DONE, h11.MUST_CLOSE}
        ends = ours is not h11.DONE or self._overrun or self.context.terminated.is_set()
        if theirs is h11.SEND_BODY and is_whole:
            self._answered_last = ends
            await self.send(Dropping(last=ends))
        elif ends and is_whole and self._ahead:
            await self._stop_listening()
        elif ends or theirs is not h11.DONE:
            await self.can_read.set()
            await self.send(Closed())
        else:
            await self._next_request()
            if self._ahead and not self._closed:
                # Only the reader can change the protocol, and it sees no request from here.
                self._may_switch = False
                self.task_group.spawn(self._handle_events)

    async def _next_request(self) -> None:
        """Begin a new cycle."""
        self.connection.start_next_cycle()
        self._dropped = 0
        self._has_begun = False
        await self.can_read.set()
        await self.send(Updated(idle=True))

    async def _check_protocol(self, event: h11.Request) -> None:
        """Hypercorn's changes over TLS too, for a later request, and for settings that are none."""
        if self._may_switch and not self.ssl and settings_are_sound(event):
            try:
                await super()._check_protocol(event)
            except (H2ProtocolAssumedError, H2CProtocolRequiredError):
                self._header_due.watch(False)  # What follows is watched by the other protocol.
                raise


def _nothing() -> None:
    """What is left of a slow body is dropped as that of any early answer."""
