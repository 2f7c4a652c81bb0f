"""Taking connections off the listening sockets, as many as may be open at a time."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial

from antiphon.transport.listener import Listener
from antiphon.transport.settings import HostConfig
from antiphon.transport.unix_socket import Peer, peer_of

AT_ONCE = 128
"""Connections that are taken in one turn of the event loop, …"""
BREATH_S = 1.0
"""… and the pause after one that cannot be taken: there are too many files open, as a rule."""
GONE = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EPERM})
"""The client has left before it was taken, or a firewall keeps it out."""

PEER: ContextVar[Peer | None] = ContextVar("antiphon_peer", default=None)
"""The process at the other end, in the tasks of a connection whose system tells it."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

log = logging.getLogger("antiphon.transport")


@asynccontextmanager
async def accepting(
    listeners: Sequence[Listener], serve: Serve, config: HostConfig
) -> AsyncIterator[Callable[[], None]]:
    """Accept as ``Acceptor`` does until the block ends or calls what it is given.

    The listeners are closed then. The connections themselves are not waited for.
    """
    acceptor = Acceptor(listeners, serve, config)
    acceptor.open()
    try:
        yield acceptor.close
    finally:
        acceptor.close()
        await acceptor.ended()


class Acceptor:
    """Accepts on all ``listeners`` and has each connection served in a task of its own.

    Above ``config.limits.max_connections`` nothing is accepted until one has ended: who comes waits
    in the backlog.
    """

    def __init__(self, listeners: Sequence[Listener], serve: Serve, config: HostConfig) -> None:
        self._listeners = listeners
        self._serve = serve
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._shaking: set[asyncio.Task[None]] = set()
        """Those whose TLS handshake is not over."""
        self._breath: asyncio.TimerHandle | None = None
        self._is_short = False
        """Whether connections cannot be taken, since the last time that all were."""
        self._is_open = False
        self._accepts = False

    def open(self) -> None:
        """Begin to accept."""
        self._is_open = True
        self._resume()

    def close(self) -> None:
        """Listen no more, and give up what has come no further than a handshake; idempotent."""
        self._is_open = False
        self._pause()
        for listener in self._listeners:
            listener.close()
        if self._breath is not None:
            self._breath.cancel()
        for task in self._shaking:
            task.cancel()

    async def ended(self) -> None:
        """Wait for what was given up."""
        if self._shaking:
            await asyncio.wait(set(self._shaking))

    def _accept(self, listener: Listener) -> None:
        room = self._config.limits.max_connections - len(self._tasks)
        if room <= 0:  # And somebody waits.
            self._config.counted.accept_pauses += 1
            self._pause()
            return
        for _ in range(min(room, AT_ONCE)):
            try:
                connected, _address = listener.socket.accept()
            except (BlockingIOError, InterruptedError):
                self._is_short = False
                return
            except OSError as error:
                if error.errno in GONE:
                    continue
                self._take_breath(error)
                return
            self._begin(connected, listener)

    def _begin(self, connected: socket.socket, listener: Listener) -> None:
        task = self._loop.create_task(self._run(connected, listener))
        self._tasks.add(task)
        self._config.counted.connections += 1
        self._shaking.add(task)
        task.add_done_callback(partial(self._ended, connected))

    async def _run(self, connected: socket.socket, listener: Listener) -> None:
        PEER.set(peer_of(connected))
        try:
            reader, writer = await self._streams(connected, listener)
        except OSError:
            return  # No TLS, or no client any more: there is nobody to tell.
        self._shaking -= {asyncio.current_task()}
        try:
            await self._serve(reader, writer)
        except BaseException:
            writer.transport.abort()  # Whoever failed may not have come so far as to close it.
            raise

    async def _streams(
        self, connected: socket.socket, listener: Listener
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop, certificate = self._loop, listener.certificate
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connected,
            ssl=certificate.context if certificate else None,
            ssl_handshake_timeout=self._config.ssl_handshake_timeout if certificate else None,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    def _ended(self, connected: socket.socket, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._config.counted.connections -= 1
        if task in self._shaking:
            self._shaking.discard(task)
            connected.close()
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.error("a connection failed", exc_info=failure)
        if self._breath is None:
            self._resume()

    def _take_breath(self, error: OSError) -> None:
        if not self._is_short:
            self._is_short = True
            self._config.counted.accept_pauses += 1
            log.error("no connection can be accepted: %s", error.strerror)
        self._pause()
        self._breath = self._loop.call_later(BREATH_S, self._breathe)

    def _breathe(self) -> None:
        self._breath = None
        self._resume()

    def _resume(self) -> None:
        if self._is_open and not self._accepts:
            self._accepts = True
            for listener in self._listeners:
                self._loop.add_reader(listener.socket, partial(self._accept, listener))

    def _pause(self) -> None:
        if self._accepts:
            self._accepts = False
            for listener in self._listeners:
                self._loop.remove_reader(listener.socket)
