"""The life of a server: listen, load, answer, end."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import anyio

from antiphon.api.counters import Metrics
from antiphon.app import make_app, make_service, make_starting_app, new_tail, running
from antiphon.config import Config
from antiphon.greeting import greeting
from antiphon.loading import load
from antiphon.transport.door import Door
from antiphon.transport.ending import Ending
from antiphon.transport.front import fronted
from antiphon.transport.listener import listen
from antiphon.transport.open_files import make_room
from antiphon.transport.settings import HostConfig
from antiphon.transport.sink import StepFlush
from antiphon.transport.tls import Certificate, reloaded_on_hangup
from antiphon.transport.worker import serve_on

log = logging.getLogger(__name__)


async def serve_forever(config: Config, say: Callable[[str], None]) -> bool:
    """Listen, load, say so, and answer until a signal ends it. Raises ``StartupError``.

    The port is bound first: when it is taken, nobody waits for a model to load in vain. While it
    is loaded, probes are answered and everything else is refused for the time being. The answer is
    whether all is at rest: if not, threads may load a model or run one still, and nobody can stop
    them.
    """
    ending = Ending()
    opening = Opening(config, ending)
    make_room(config.limits.max_connections)
    with ExitStack() as stack:
        certificate = _certificate(config)
        listeners = [
            stack.enter_context(listen(address, certificate, config.backlog))
            for address in config.addresses
        ]
        front = fronted(
            opening.door,
            opening.host_config,
            access_log=config.access_log,
            forwarded_allow_ips=config.forwarded_allow_ips,
        )
        app = stack.enter_context(front)
        stack.enter_context(ending.on_signals())
        stack.enter_context(reloaded_on_hangup(certificate))
        say("Loading …")
        urls = [listener.url for listener in listeners]
        task = asyncio.ensure_future(opening.run(urls, say))
        try:
            await serve_on(
                app,
                listeners,
                ending,
                config=opening.host_config,
                grace_s=config.drain_timeout,
                drain=lambda: opening.door.drain(),
            )
        finally:
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task})
    if opening.failure is not None:
        raise opening.failure
    return opening.at_rest


def _certificate(config: Config) -> Certificate | None:
    if config.certfile is None or config.keyfile is None:
        return None
    return Certificate(config.certfile, config.keyfile, config.client_ca, config.http)


class Opening:
    """A door that is opened once its model is loaded."""

    def __init__(self, config: Config, ending: Ending) -> None:
        self._config = config
        self._ending = ending
        self.metrics = Metrics()
        self.flush = StepFlush()
        self.host_config = HostConfig(
            new_tail,
            config.limits,
            self.metrics.transport,
            http=config.http,
            flush=self.flush,
            h2_direct_framing=config.h2_direct_framing == "auto",
        )
        self.door = Door(make_starting_app(config, self.metrics))
        self.at_rest = False
        """Whether no thread loads or runs a model any more."""
        self.failure: BaseException | None = None
        """What ended the server, where it was no signal."""

    async def run(self, urls: Sequence[str], say: Callable[[str], None]) -> None:
        """Load, open, and keep the engine going until cancelled. A failure ends the server."""
        try:
            await self._load_and_run(urls, say)
        except asyncio.CancelledError:
            raise
        except BaseException as failure:  # a library's panic is no Exception, and ends it as well
            if self._ending.asked.is_set():
                log.warning("a failure at the end of the server", exc_info=failure)
            else:
                self.failure = _alone(failure)
                self._ending.ask()

    async def _load_and_run(self, urls: Sequence[str], say: Callable[[str], None]) -> None:
        engine, models, example = await load(self._config, self.metrics.engine_restarted)
        self.at_rest = True
        service = make_service(engine, models, self._config, self.metrics, flush=self.flush.run)
        try:
            async with running(service):
                self.door.drain = partial(service.fanout.drain, self._config.drain_timeout)
                self.door.app = make_app(service)
                _settle()
                for line in greeting(self._config, models, example, urls):
                    say(line)
                await anyio.sleep_forever()
        finally:
            self.at_rest = not service.fanout.left_behind


def _settle() -> None:
    """Take what is loaded out of the collector's sight: it stays as long as the server.

    To walk through all of it takes tens of milliseconds, in which no client gets a token.
    """
    gc.collect()
    gc.freeze()


def _alone(failure: BaseException) -> BaseException:
    """The failure itself, out of the groups that task groups make of it."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    return failure
