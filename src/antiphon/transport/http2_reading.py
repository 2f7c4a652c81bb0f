"""What an HTTP/2 client sends: its requests, their bodies, and all else that it may ask.

The sending side is ``antiphon.transport.http2``.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import h2.events
import h2.exceptions
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Body, EndBody, InformationalResponse
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.typing import AppWrapper

from antiphon.transport.deadline import Deadline
from antiphon.transport.expecting import asking, expects_continue
from antiphon.transport.floods import Floods
from antiphon.transport.guarding import guarded
from antiphon.transport.http2_connection import ServerH2
from antiphon.transport.http2_rules import malformed
from antiphon.transport.settings import HostConfig
from antiphon.transport.unread import SentAway, UnreadStreams
from antiphon.transport.uptake import Uptake, taking

ASKING = b"antiphon"
"""What a PING carries: eight bytes of our choice."""
LAST = b"last one"
"""What the last one does."""
PIECE = 2 * 1024
"""Bytes that are looked at between two turns of the loop in which requests begin: h2 takes all
that it gets at once, and a request can be thirteen bytes."""
TOGETHER = 16
"""Requests that begin in one turn."""
TO_BE_SAID = 64 * 1024
"""Bytes of control frames and heads that a client may leave unread, however little is to be queued
for it: they do not wait for anything but the socket."""


class Reading(H2Protocol):
    """The receiving side of one connection."""

    config: HostConfig
    connection: ServerH2

    def __init__(self, *connection: Any) -> None:
        super().__init__(*connection)
        limits, counted = self.config.limits, self.config.counted
        self._floods = Floods(limits, counted, asyncio.get_running_loop().time)
        self.connection = ServerH2(limits, counted, self._floods)
        self._unread = UnreadStreams(self._give_up)
        both = self.connection.give_to_all, self.connection.give_to_one
        self._uptake = Uptake(*both, limits.h2_connection_window)
        self._header_due = Deadline(limits.header_timeout, self._header_late)
        self._has_read = asyncio.Event()
        self._has_left = False
        """Whether the client has said that it opens no more streams, …"""
        self._is_leaving = False
        """… and has some that go on."""

    @abstractmethod
    async def _close(self) -> None:
        """The connection is gone."""

    @abstractmethod
    def drop(self) -> None:
        """End the connection, whatever is unsaid."""

    @abstractmethod
    def _settle(self) -> None:
        """There is something to say, and the connection may be idle."""

    @property
    def is_dropping(self) -> bool:
        """Whether bodies of answered requests may still come. The connection may be idle then."""
        return bool(self._unread)

    async def handle(self, event: Event) -> None:
        """Bytes from the client, or the end of the connection."""
        if isinstance(event, Closed):
            self._unread.clear()
            self._header_due.watch(False)
            await self._close()
        if isinstance(event, RawData):
            data = event.data
            for at in range(0, len(data), PIECE):
                if not self.closed:
                    await self._take(data[at : at + PIECE] if len(data) > PIECE else data)

    async def _take(self, data: bytes) -> None:
        try:
            await self._handle_events(self.connection.receive_data(data))
        except h2.exceptions.ProtocolError as error:
            self._floods.tell(error)
            await self._end(error.error_code)
        else:
            self._header_due.watch(self.connection.is_mid_frame and not self.closed)
            if self.connection.unsaid > max(self.config.limits.connection_high, TO_BE_SAID):
                # It is to be told very much, and does not read it.
                self.config.counted.deaf_peers += 1
                self.drop()
                await self.handle(Closed())

    async def say_goodbye(self, error_code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Send GOAWAY, unless one has been sent or received already."""
        if self.connection.goes_on:
            self.connection.close_connection(error_code)
        await self._flush()

    def ask(self, data: bytes = ASKING) -> None:
        """Ask the client whether it is there."""
        with suppress(h2.exceptions.ProtocolError):  # The connection may be over.
            self.connection.ping(data)
        self.task_group.spawn(self._flush)

    async def read_out(self) -> None:
        """Wait until the client has read all that it was sent, which its answer to a PING shows."""
        self.ask(LAST)
        await self._has_read.wait()

    @property
    @abstractmethod
    def owes(self) -> bool:
        """Whether something is queued until the client takes it."""

    async def _handle_events(self, events: Sequence[h2.events.Event]) -> None:
        """Hypercorn's begins all requests at once, and halts at a stream that has gone."""
        opened: set[int | None] = set()  # What a window was opened for; often for the same again.
        requests = 0
        for event in events:
            if self.closed:
                return
            match event:
                case h2.events.RequestReceived():
                    await self._request(event)
                    requests += 1
                    if requests % TOGETHER == 0:
                        await self._flush()
                        await asyncio.sleep(0)  # The others come first.
                case h2.events.DataReceived():
                    await self._data(event)
                case h2.events.StreamEnded():
                    if (stream := self.streams.get(event.stream_id)) is not None:
                        await stream.handle(EndBody(stream_id=event.stream_id))
                    elif self._unread.end(event.stream_id):
                        await self.send(Updated(idle=self.idle))
                        self._leave()
                    self._uptake.complete(event.stream_id)
                case h2.events.StreamReset():
                    self._unread.end(event.stream_id)
                    await self._close_stream(event.stream_id)
                    await self.send(Updated(idle=self.idle))
                case h2.events.WindowUpdated():
                    opened.add(event.stream_id or None)
                case h2.events.RemoteSettingsChanged():
                    if SettingCodes.INITIAL_WINDOW_SIZE in event.changed_settings:
                        opened.add(None)
                case h2.events.PingAckReceived() if event.ping_data == LAST:
                    self._has_read.set()
                case h2.events.ConnectionTerminated() if self.connection.goes_on:
                    self._is_leaving = self._has_left = True
                    self._leave()
                case h2.events.ConnectionTerminated():
                    await self.send(Closed())
        for stream_id in opened:
            await self._window_updated(stream_id)
        await self._flush()

    async def _request(self, event: h2.events.RequestReceived) -> None:
        limit, ends = self.config.h2_max_concurrent_streams, self.context.terminated.is_set()
        if ends or self._has_left or len(self.streams) >= limit:
            self._floods.refused()
            self._reset(event.stream_id, ErrorCodes.REFUSED_STREAM)
        elif (error := malformed(event)) is not None:
            self._floods.reset()
            self._reset(event.stream_id, error)
        else:
            if self._unread and len(self.streams) + len(self._unread) >= limit:
                self._unread.lose_oldest()
            await self._create_stream(event)
            await self.send(Updated(idle=False))

    async def _data(self, event: h2.events.DataReceived) -> None:
        stream_id, size = event.stream_id, event.flow_controlled_length
        if (stream := self.streams.get(stream_id)) is not None:
            self._uptake.came(stream_id, size, len(event.data))
            await stream.handle(Body(stream_id=stream_id, data=event.data))
            while (latest := self._uptake.too_many()) is not None:
                await self._refuse_body(latest)
        else:
            self._unread.drop(stream_id, size)
            self.connection.acknowledge_received_data(size, stream_id)

    async def _refuse_body(self, stream_id: int) -> None:
        self.config.counted.crowded_bodies += 1
        self._reset(stream_id, ErrorCodes.ENHANCE_YOUR_CALM)
        await self._close_stream(stream_id)
        await self.send(Updated(idle=self.idle))
        self._floods.reset()

    async def _taken(self, stream_id: int, size: int) -> None:
        self._uptake.taken(stream_id, size)
        await self._flush()

    async def _close_stream(self, stream_id: int) -> None:
        """Hypercorn's knows no connection that ends with its last stream."""
        await super()._close_stream(stream_id)
        self._leave()

    def _leave(self) -> None:
        """End the connection if its client wants no more of it, and has all that it wanted."""
        if self._is_leaving and not (self.streams or self._unread or self.closed):
            self._is_leaving = False
            self.task_group.spawn(self._end, ErrorCodes.NO_ERROR)

    def _reset(self, stream_id: int, error_code: ErrorCodes) -> None:
        """End a stream, unless the client has done so: a later frame of the same read may say it,
        and h2 has seen them all by now. A stream that is gone is nobody's fault."""
        with suppress(h2.exceptions.ProtocolError):  # Or the connection is over.
            self.connection.reset_stream(stream_id, error_code)

    def _header_late(self) -> None:
        self.config.counted.slow_headers += 1
        self.task_group.spawn(self._end, ErrorCodes.ENHANCE_YOUR_CALM)

    async def _end(self, error_code: ErrorCodes) -> None:
        await self.say_goodbye(error_code)
        await self.handle(Closed())
        await self.send(SentAway())

    def _application(self, request: h2.events.RequestReceived, path: bytes) -> AppWrapper:
        """The application for ``request``, as far as it is to have it."""
        stream_id, headers = request.stream_id, request.headers
        hang_up = partial(self._unread.lose, stream_id)
        app = guarded(self.app, self.config, path, headers, hang_up)
        if request.stream_ended is None and expects_continue(headers):
            go_on = InformationalResponse(stream_id, headers=[], status_code=100)
            app = asking(app, partial(self.stream_send, go_on))
        return taking(app, partial(self._taken, stream_id))

    def _give_up(self, stream_id: int) -> None:
        """Take no more of a body that nobody reads (section 8.1)."""
        self.config.counted.unread_bodies += 1
        self._reset(stream_id, ErrorCodes.NO_ERROR)
        self._settle()
        self._leave()
