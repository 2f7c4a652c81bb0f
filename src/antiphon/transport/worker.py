"""Serving an ASGI application on a listener, from its start-up to its shutdown."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.typing import ASGIFramework, LifespanState
from hypercorn.utils import LifespanFailureError, LifespanTimeoutError

from antiphon.errors import StartupError
from antiphon.transport.host import Host
from antiphon.transport.listener import BACKLOG, Listener, bind
from antiphon.transport.settings import HostConfig

__all__ = ["Listener", "bind", "serve"]

log = logging.getLogger("antiphon.transport")


async def serve(
    app: ASGIFramework,
    listener: Listener,
    *,
    shutdown: Callable[[], Awaitable[object]] | None = None,
    drain: Callable[[], Awaitable[object]] | None = None,
    grace_s: float = 2.0,
    ended: asyncio.Event | None = None,
) -> None:
    """Serve HTTP/1.1 and HTTP/2 on ``listener`` until ``shutdown()`` returns.

    HTTP/2 is spoken after ALPN, by prior knowledge and after ``Upgrade: h2c``. Without
    ``shutdown``, SIGINT or SIGTERM ends the server, and so does ``ended``; a second signal ends it
    at once. At the end the application may ``drain``: bring its open responses to their own end,
    while connections are still taken and served, so that probes and new requests hear of it. Then
    no connection is taken any more, idle ones are closed and the others get ``grace_s`` seconds.
    Raises ``StartupError`` when the application does not start.
    """
    config = HostConfig()
    asgi = ASGIWrapper(app)
    ended, forced = ended or asyncio.Event(), asyncio.Event()
    async with _lifespan(asgi, config) as state:
        host = Host(asgi, config, state)
        server = await asyncio.start_server(
            host.serve,
            sock=listener.socket,
            backlog=BACKLOG,
            ssl=listener.tls,
            ssl_handshake_timeout=config.ssl_handshake_timeout if listener.tls else None,
        )
        with _signals(ended, forced) if shutdown is None else nullcontext():
            try:
                await (ended.wait if shutdown is None else shutdown)()
            finally:
                try:
                    if drain is not None:
                        await _unless(forced, drain())
                finally:
                    # Not wait_closed(): from CPython 3.12 on it waits for every connection.
                    server.close()
                    await host.close(grace_s, forced)


async def _unless(forced: asyncio.Event, work: Awaitable[object]) -> None:
    """Await ``work``, or give it up when ``forced``."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(forced.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


@contextmanager
def _signals(first: asyncio.Event, second: asyncio.Event) -> Iterator[None]:
    """Set ``first`` at a signal to end, ``second`` at the next."""

    def ring() -> None:
        (second if first.is_set() else first).set()

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, ring)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _lifespan(app: ASGIWrapper, config: HostConfig) -> AsyncIterator[LifespanState]:
    """The application's own start-up and shutdown around the block."""
    loop = asyncio.get_running_loop()
    state: LifespanState = {}
    lifespan = Lifespan(app, config, loop, state)
    task = loop.create_task(lifespan.handle_lifespan())
    try:
        await lifespan.wait_for_startup()
        if task.done():
            task.result()
    except (LifespanFailureError, LifespanTimeoutError) as error:
        raise StartupError(f"The application did not start: {error}") from error
    try:
        yield state
    finally:
        try:
            await lifespan.wait_for_shutdown()
        except LifespanTimeoutError:
            log.warning("the application did not shut down in time")
        task.cancel()
        await asyncio.wait({task})
