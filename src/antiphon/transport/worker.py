"""Serving an ASGI application on a listener, from its start-up to its shutdown."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework

from antiphon.errors import StartupError
from antiphon.transport.accepting import accepting
from antiphon.transport.addresses import parse_address
from antiphon.transport.ending import Ending
from antiphon.transport.host import Host
from antiphon.transport.lifespan import lifespan_of
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.listener import Listener, listen
from antiphon.transport.settings import HostConfig
from antiphon.transport.tls import Certificate

NOT_KEPT = (
    "backlog", "ca_certs", "ciphers", "insecure_bind", "keyfile_password", "quic_bind",
    "root_path", "server_names", "ssl_handshake_timeout", "verify_flags", "verify_mode", "workers",
)  # fmt: skip


async def serve(
    app: ASGIFramework,
    config: Config,
    *,
    shutdown_trigger: Callable[..., Awaitable[object]] | None = None,
) -> None:
    """Serve any ASGI application as ``hypercorn.asyncio.serve`` does, and in its place.

    Of ``config`` count ``bind``, ``certfile`` and ``keyfile``, ``graceful_timeout``,
    ``h2_max_concurrent_streams`` and ``keep_alive_timeout``; its other limits and its logs are
    those of this host (``Limits``, the logger ``antiphon.transport``). The server ends when
    ``shutdown_trigger`` returns, or where there is none at SIGINT or SIGTERM; a second signal ends
    it at once. Raises ``StartupError`` for an address or certificate that cannot be used, for the
    settings of ``NOT_KEPT`` and for an application that does not start.
    """
    _refuse_what_is_not_kept(config)
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
    async with lifespan_of(asgi, config) as state:
        host = Host(asgi, config, state)
        async with accepting(listeners, host.serve, config) as stop:
            try:
                await ending.asked.wait()
            finally:
                await host.end(ending, grace_s, close_listeners=stop, drain=drain)


def _refuse_what_is_not_kept(config: Config) -> None:
    """Raises ``StartupError`` for settings that somebody counts on, and that do nothing here."""
    defaults = Config()
    for name in NOT_KEPT:
        if getattr(config, name) != getattr(defaults, name):
            raise StartupError(f"The setting {name} of Hypercorn is not offered here.")


def _listeners_of(config: Config) -> Iterator[Listener]:
    certificate = None
    if config.certfile is not None and config.keyfile is not None:
        certificate = Certificate(Path(config.certfile), Path(config.keyfile))
    for address in config.bind:
        yield listen(parse_address(address), certificate)


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
