"""The composition root: the routes, what they need, and the application that they make."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
from quart import Quart

from antiphon.api import (
    admission,
    authentication,
    chat,
    completions,
    cors,
    error_pages,
    header_limit,
    health,
    metrics,
    models,
    rate_limit,
    responses,
    starting,
    tokenize,
)
from antiphon.api.counters import Metrics
from antiphon.api.engine_metrics import EngineLoad
from antiphon.api.identity import uuid7_hex
from antiphon.api.service import Service
from antiphon.config import DEFAULTS, Config
from antiphon.engines.port import EnginePort
from antiphon.runs.admission import Admission
from antiphon.runs.catalogue import Catalogue, ServedModel
from antiphon.runs.fanout import Fanout
from antiphon.runs.run import Run
from antiphon.transport.quart_host import AntiphonHTTPConnection


def make_service(
    engine: EnginePort,
    models: Iterable[ServedModel],
    config: Config = DEFAULTS,
    counted: Metrics | None = None,
    flush: Callable[[], None] = lambda: None,
) -> Service:
    """The service over a started engine, with the system's clocks and entropy.

    ``counted`` is where the server counts already, if it does. ``flush`` writes what an engine step
    has brought, where the host can do that.
    """
    counted = counted or Metrics()
    models = list(models)
    places = _places(models, config.max_waiting)

    def ended(run: Run) -> None:
        counted.ended(run)
        places.ended(len(run.choices), time.monotonic_ns())

    fanout = Fanout(
        engine,
        wall_s=time.time,
        monotonic_ns=time.monotonic_ns,
        timeout_s=config.request_timeout,
        observe=ended,
        admission=places,
        flush=flush,
    )
    counted.watch(lambda: fanout.load)
    counted.registry.register(EngineLoad(lambda: fanout.gauges, lambda: models[0].info.kv_pages))
    return Service(
        catalogue=Catalogue(models, unknown_status=config.unknown_model_status),
        fanout=fanout,
        metrics=counted,
        new_tail=new_tail,
        draw_seed=lambda: secrets.randbits(63),
        api_keys=config.api_key,
        cors_origins=config.cors_origin,
        strict_requests=config.strict_requests,
        ping_s=config.sse_ping_interval,
        wire_profile=config.wire_profile,
        reasoning_field=config.reasoning_field,
        max_body=config.max_body,
        rate_limit=config.rate_limit,
        pad=lambda length: secrets.token_urlsafe(length)[:length],
        secret=secrets.token_bytes(32) if config.secret is None else config.secret.encode(),
    )


def _places(models: Sequence[ServedModel], max_waiting: int) -> Admission:
    """As many sequences as the engine runs together, and ``max_waiting`` more; 0 is no limit."""
    if not max_waiting:
        return Admission()
    return Admission(max(model.info.max_running for model in models) + max_waiting)


def make_app(service: Service) -> Quart:
    """The ASGI application; ``running`` must be entered around its life."""
    app = _bare_app(service.new_tail, service.api_keys, service.metrics, service.cors_origins)
    app.config["MAX_CONTENT_LENGTH"] = service.max_body
    admission.install(app, service)
    rate_limit.install(app, service)
    app.register_blueprint(health.blueprint(partial(health.condition_of, service)))
    for routes in (models, completions, chat, responses, tokenize):
        app.register_blueprint(routes.blueprint(service))
    return app


def make_starting_app(config: Config, counted: Metrics) -> Quart:
    """What is served while the model is loaded."""
    app = _bare_app(new_tail, config.api_key, counted, config.cors_origin)
    starting.install(app)
    return app


def _bare_app(
    new_tail: Callable[[], str], keys: Sequence[str], counted: Metrics, origins: Sequence[str]
) -> Quart:
    """An application with one route, ``/metrics``, whose errors are ours."""
    app = Quart("antiphon", static_folder=None)
    app.asgi_http_class = AntiphonHTTPConnection
    app.url_map.merge_slashes = False
    app.config.update(
        PROVIDE_AUTOMATIC_OPTIONS=False,
        # A unary answer takes as long as its tokens do; a client that leaves ends it.
        RESPONSE_TIMEOUT=None,
    )
    error_pages.install(app, new_tail)
    metrics.install(app, counted)
    header_limit.install(app)
    cors.install(app, origins)
    authentication.install(app, keys)
    app.register_blueprint(metrics.blueprint(counted))
    return app


def new_tail() -> str:
    """A fresh id tail, by the system's clock and entropy."""
    return uuid7_hex(time.time_ns() // 1_000_000, secrets.token_bytes(10))


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[None]:
    """Carry the engine's frames while the block runs, then stop the engine.

    Whatever is still open at the end gets its terminal event there.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.fanout.consume)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await service.fanout.drain(0)
