"""Serving an ASGI application on a listener, from its start-up to its shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.typing import ASGIFramework, LifespanState
from hypercorn.utils import LifespanFailureError, LifespanTimeoutError

from antiphon.errors import StartupError
from antiphon.transport.ending import Ending
from antiphon.transport.host import Host
from antiphon.transport.listener import BACKLOG, Listener
from antiphon.transport.settings import HostConfig

log = logging.getLogger("antiphon.transport")


async def serve(
    app: ASGIFramework,
    listener: Listener,
    ending: Ending,
    *,
    grace_s: float,
    new_request_id: Callable[[], str],
    drain: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Serve HTTP/1.1 and HTTP/2 on ``listener`` until ``ending`` is asked for.

    HTTP/2 is spoken after ALPN, by prior knowledge and after ``Upgrade: h2c``. At the end the
    application may ``drain``: bring its open responses to their own end, while connections are
    still taken and served, so that probes and new requests hear of it. Then no connection is taken
    any more, idle ones are closed and the others get ``grace_s`` seconds. Nothing is waited for
    once the end is forced. ``new_request_id`` names the requests that are no HTTP, and never come
    to the application. Raises ``StartupError`` when the application does not start.
    """
    config = HostConfig(new_request_id)
    asgi = ASGIWrapper(app)
    async with _lifespan(asgi, config) as state:
        host = Host(asgi, config, state)
        server = await asyncio.start_server(
            host.serve,
            sock=listener.socket,
            backlog=BACKLOG,
            ssl=listener.tls,
            ssl_handshake_timeout=config.ssl_handshake_timeout if listener.tls else None,
        )
        try:
            await ending.asked.wait()
        finally:
            try:
                if drain is not None:
                    await _unless(ending.forced, drain())
            finally:
                # Not wait_closed(): from CPython 3.12 on it waits for every connection.
                server.close()
                await host.close(grace_s, ending.forced)


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
