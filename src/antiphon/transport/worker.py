"""Serving an ASGI application on a listener, from its start-up to its shutdown."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework, LifespanState
from hypercorn.utils import LifespanFailureError, LifespanTimeoutError

from antiphon.errors import StartupError
from antiphon.transport.ending import Ending
from antiphon.transport.host import Host
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.listener import BACKLOG, Listener, bind
from antiphon.transport.settings import HostConfig

log = logging.getLogger("antiphon.transport")


async def serve(
    app: ASGIFramework,
    config: Config,
    *,
    shutdown_trigger: Callable[..., Awaitable[object]] | None = None,
) -> None:
    """Serve any ASGI application as ``hypercorn.asyncio.serve`` does, and in its place.

    Of ``config`` count ``bind``, ``certfile`` and ``keyfile``, ``graceful_timeout``,
    ``h2_max_concurrent_streams`` and ``keep_alive_timeout``. The server ends when
    ``shutdown_trigger`` returns, or where there is none at SIGINT or SIGTERM; a second signal ends
    it at once. Raises ``StartupError`` for an address or certificate that cannot be used and for an
    application that does not start.
    """
    ending = Ending()
    async with AsyncExitStack() as stack:
        listeners = [stack.enter_context(each) for each in _listeners_of(config)]
        if shutdown_trigger is None:
            stack.enter_context(ending.on_signals())
        else:
            await stack.enter_async_context(_asked_by(shutdown_trigger, ending))
        await serve_on(
            app,
            listeners,
            ending,
            config=HostConfig(_new_request_id, _limits_of(config)),
            grace_s=config.graceful_timeout,
        )


async def serve_on(
    app: ASGIFramework,
    listeners: Sequence[Listener],
    ending: Ending,
    *,
    config: HostConfig,
    grace_s: float,
    drain: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Serve HTTP/1.1 and HTTP/2 on ``listeners`` until ``ending`` is asked for.

    HTTP/2 is spoken after ALPN, by prior knowledge and after ``Upgrade: h2c``. At the end open
    answers get ``grace_s`` seconds. The application may ``drain``: take nothing new and return when
    all of its answers have been made; cancelled, it ends them at once. Meanwhile connections are
    still taken and served, so that probes and new requests hear of it. Without it no connection is
    taken any more and idle ones are closed. A forced end waits for no answer. Raises
    ``StartupError`` when the application does not start.
    """
    asgi = ASGIWrapper(app)
    async with _lifespan(asgi, config) as state:
        host = Host(asgi, config, state)
        servers = [
            await asyncio.start_server(
                host.serve,
                sock=listener.socket,
                backlog=BACKLOG,
                ssl=listener.tls,
                ssl_handshake_timeout=config.ssl_handshake_timeout if listener.tls else None,
            )
            for listener in listeners
        ]
        try:
            await ending.asked.wait()
        finally:

            def close_listeners() -> None:
                # Not wait_closed(): from CPython 3.12 on it waits for every connection.
                for server in servers:
                    server.close()

            await host.end(ending, grace_s, close_listeners=close_listeners, drain=drain)


def _listeners_of(config: Config) -> Iterator[Listener]:
    certfile = Path(config.certfile) if config.certfile is not None else None
    keyfile = Path(config.keyfile) if config.keyfile is not None else None
    for address in config.bind:
        host, _, port = address.rpartition(":")
        yield bind(host.strip("[]"), int(port), certfile=certfile, keyfile=keyfile)


def _limits_of(config: Config) -> Limits:
    return attrs.evolve(
        DEFAULT_LIMITS,
        h2_max_concurrent_streams=config.h2_max_concurrent_streams,
        idle_timeout=config.keep_alive_timeout,
        first_request_timeout=min(config.keep_alive_timeout, DEFAULT_LIMITS.first_request_timeout),
    )


def _new_request_id() -> str:
    return uuid.uuid4().hex


@asynccontextmanager
async def _asked_by(
    trigger: Callable[..., Awaitable[object]], ending: Ending
) -> AsyncIterator[None]:
    """``ending`` is asked for when ``trigger`` returns or fails. A failure leaves the block."""

    async def wait() -> None:
        try:
            await trigger()
        finally:
            ending.ask()

    waiting = asyncio.ensure_future(wait())
    try:
        yield
        if waiting.done():
            waiting.result()
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


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
