"""One TCP connection: reading, the choice of protocol, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import Any

from h2.errors import ErrorCodes
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from antiphon.transport.farewell import hang_up, hear_out, see_off
from antiphon.transport.http1 import AntiphonH1
from antiphon.transport.http2 import AntiphonH2
from antiphon.transport.inbox import Calls
from antiphon.transport.negotiation import Negotiation
from antiphon.transport.peers import PeerWatch, watched_by_the_system
from antiphon.transport.settings import HostConfig
from antiphon.transport.unread import DROPPING_S, QUIET_S, Dropping, SentAway
from antiphon.transport.wire import Wire

PIECE = 16 * 1024
"""Bytes that are read in one turn: there may be more than a thousand frames in them."""
UNTOLD_S = 1.0
"""What a client gets between two pieces of a body after the last answer of a connection where the
end cannot be told first: TLS has no half-close here, so one that waits for the end of the
connection would wait all the time that a body is given."""
HUSH_S = 0.1
"""What a client whose request has been answered gets between two pieces of its body when the server
ends. It still sends, or it does not read at all: then nothing is owed to it."""

LAST_TURNS = 10
"""Turns of the event loop that a request gets when its client has ended for sending. A refusal
needs three or four and can be read by a client that still listens; all others have left."""

log = logging.getLogger("antiphon.transport")


class Connection(TCPServer):
    """Serves one connection until it ends. No failure leaves ``run``."""

    config: HostConfig
    protocol: Negotiation
    _patience: float
    """What it gets to send a request, in seconds."""
    _ended = False
    _sent_last = False
    _deaf = False
    """Whether what arrives is dropped: the client has been told of the end."""
    _heard = 0.0
    """When the client was last heard, by the loop's clock."""
    _served = 0.0
    """When its last answer ended, likewise."""
    _drop_until: float | None = None
    """When the body that is dropped has to be over, by the loop's clock."""

    def __init__(self, *connection: Any) -> None:
        super().__init__(*connection)
        self._closing: asyncio.Task[None] | None = None
        self._wire = Wire(self.writer, self.config.limits, self._stalled)
        limits = self.config.limits
        self._patience = limits.first_request_timeout
        self._peer = PeerWatch(
            limits, heard=lambda: self._heard, owes=self._owes, ask=self._ask, lost=self._lost
        )

    async def run(self) -> None:
        """From the accepted socket to the closed one, with every handler ended in between."""
        sock = self.writer.get_extra_info("socket")
        watched_by_the_system(sock, self.config.limits)
        tls = self.writer.get_extra_info("ssl_object")
        try:
            client = parse_socket_addr(sock.family, sock.getpeername())
            server = parse_socket_addr(sock.family, sock.getsockname())
            async with Calls(self.loop) as task_group:
                self._task_group = task_group
                self.protocol = Negotiation(
                    self.app,
                    self.config,
                    self.context,
                    task_group,
                    ConnectionState(self.state),
                    tls is not None,
                    client,
                    server,
                    self.protocol_send,
                    alpn_protocol=tls.selected_alpn_protocol() if tls is not None else None,
                    wire=self._wire,
                )
                try:
                    await self.protocol.initiate()
                    await self.idle_task.restart(task_group, self._idle_timeout)
                    await self._read_data()
                finally:
                    # However it ends: the group waits for the handlers, and they for the client.
                    self.protocol.protocol.abandon()
                # The group would wait for it, and keep the socket of a client that has gone.
                self._ended = True
                self._peer.watch(False)
                await self.idle_task.stop()
        except OSError:
            pass  # The client has gone.
        except Exception:
            log.exception("a connection failed")
        finally:
            self._peer.watch(False)
            self._wire.close()
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """What the protocol has for the client, or tells of itself."""
        if isinstance(event, Updated) and self._ended:
            return  # Nobody is waited for any more.
        if isinstance(event, Updated):
            self._drop_until = None
            self._served = self.loop.time()
            self._peer.watch(not event.idle and isinstance(self.protocol.protocol, AntiphonH2))
        if isinstance(event, Updated) and not event.idle:
            self._patience = self.config.keep_alive_timeout
        if isinstance(event, RawData):
            if self.writer.is_closing():
                await self.protocol.handle(Closed())
                return
            self._wire.write(event.data)
            await self._wire.drained()
        elif isinstance(event, Dropping):
            await self._dropping(event.last)
        elif isinstance(event, SentAway):
            self._deaf = True
            self._task_group.spawn(self._see_off)
        else:
            await super().protocol_send(event)

    def _owes(self) -> bool:
        protocol, transport = self.protocol.protocol, self.writer.transport
        return bool(transport.get_write_buffer_size()) or (
            isinstance(protocol, AntiphonH2) and protocol.owes
        )

    def _ask(self) -> None:
        if isinstance(protocol := self.protocol.protocol, AntiphonH2):
            protocol.ask()

    def _lost(self) -> None:
        self.config.counted.silent_peers += 1
        self.abort()

    async def say_goodbye(self, error_code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Tell an HTTP/2 client that the connection ends, then close it once that is written.

        A client that did nothing wrong gets the time to read all that it was sent.
        """
        if isinstance(self.protocol.protocol, AntiphonH2):
            await self.protocol.protocol.say_goodbye(error_code)
            if error_code == ErrorCodes.NO_ERROR:
                self._deaf = True
                await see_off(self.reader, self.writer, lambda: max(self._heard, self._served))
        if not self.writer.is_closing():
            self.writer.close()

    async def _see_off(self) -> None:
        """Let the client read why it is sent away, which a socket that is reset would not."""
        await see_off(self.reader, self.writer, lambda: self._heard)
        await self._close()

    def _stalled(self) -> None:
        self.config.counted.stalled_readers += 1

    def abort(self) -> None:
        """Drop the connection, whatever is still unwritten."""
        self.writer.transport.abort()

    async def _dropping(self, last: bool) -> None:
        """Wait for more of a body that nobody reads.

        A socket that is closed before it has been read to its end is reset, and with that some
        clients lose the answer. So the end is told first, and the rest is read.
        """
        if self._ended or self.writer.is_closing():
            return
        tells = self.writer.can_write_eof()
        if last and tells and not self._sent_last:
            with contextlib.suppress(OSError, RuntimeError):
                self.writer.write_eof()
            self._sent_last = True
        now = self.loop.time()
        if self._drop_until is None:
            self._drop_until = now + DROPPING_S
        if now < self._drop_until:
            quiet = QUIET_S if tells or not last else UNTOLD_S
            seconds = min(quiet, self._drop_until - now)
            await self.idle_task.restart(self._task_group, partial(self._body_timeout, seconds))

    async def _read_data(self) -> None:
        try:
            while data := await self.reader.read(PIECE):
                self._heard = self.loop.time()
                if not self._deaf:
                    await self.protocol.handle(RawData(data))
                if len(data) == PIECE:
                    await asyncio.sleep(0)  # There may be more; the others come first.
            await self._last_turns()
        except OSError:
            pass  # The client has gone.
        except Exception:
            log.exception("a connection failed")
            await self.protocol.handle(Closed())
            await self.say_goodbye(ErrorCodes.INTERNAL_ERROR)
        await self.protocol.handle(Closed())

    async def _last_turns(self) -> None:
        turns = LAST_TURNS
        while turns and isinstance(one := self.protocol.protocol, AntiphonH1) and one.is_answering:
            turns -= 1
            await asyncio.sleep(0)

    async def _idle_timeout(self) -> None:
        if await self._end_after(self._patience):
            self.config.counted.idle_ends += 1
        await asyncio.shield(self._initiate_server_close())

    async def _body_timeout(self, seconds: float) -> None:
        if await self._end_after(seconds):
            self.config.counted.unread_bodies += 1
        await asyncio.shield(self._initiate_server_close())

    async def _end_after(self, seconds: float) -> bool:
        """Wait so long, or for the server's end: whether it was the former."""
        try:
            await asyncio.wait_for(self.context.terminated.wait(), seconds)
        except TimeoutError:
            return True
        await self._hush()
        return False

    async def _hush(self) -> None:
        """Wait while pieces of a body that nobody reads come: to close now would be a reset."""
        until = self.loop.time() + HUSH_S
        while self.protocol.protocol.is_dropping and (rest := until - self.loop.time()) > 0:
            await asyncio.sleep(rest)
            until = self._heard + HUSH_S

    async def _initiate_server_close(self) -> None:
        if isinstance(protocol := self.protocol.protocol, AntiphonH2):
            await hear_out(protocol.read_out, self._served)
        await self.say_goodbye()
        await self.protocol.handle(Closed())
        await self._hang_up()

    async def _close(self) -> None:
        """The connection is over."""
        await self._hang_up()
        await self.idle_task.stop()

    async def _hang_up(self) -> None:
        """Close the socket, once. Who asks for it may be cancelled by that, and it goes on."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(hang_up(self.writer))
        await asyncio.shield(self._closing)
