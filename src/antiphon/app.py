"""The composition root: the only module that knows every room."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal

import anyio
from anyio import to_thread
from quart import Quart

from antiphon.api import (
    authentication,
    chat,
    completions,
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
from antiphon.api.identity import uuid7_hex
from antiphon.api.service import Service
from antiphon.config import DEFAULT_FIXTURES, Config
from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineInfo, EnginePort, EngineStartError
from antiphon.engines.recording import Recording, load_recordings
from antiphon.engines.replay import ReplayEngine
from antiphon.errors import StartupError
from antiphon.greeting import greeting
from antiphon.models.files import resolve
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.runs.catalogue import Catalogue, ServedModel
from antiphon.runs.fanout import Fanout
from antiphon.transport.door import Door
from antiphon.transport.listener import bind
from antiphon.transport.quart_host import AntiphonHTTPConnection
from antiphon.transport.worker import serve
from responsory.segments import PLAIN, Spec, family

DEFAULTS = Config()


def make_service(
    engine: EnginePort,
    models: Iterable[ServedModel],
    *,
    api_keys: tuple[str, ...] = (),
    strict_requests: bool = False,
    ping_s: float = 15.0,
    wire_profile: Literal["openai", "openresponses"] = "openai",
    reasoning_field: Literal["reasoning_content", "reasoning", "both"] = "reasoning_content",
    unknown_model_status: Literal[400, 404] = 400,
    request_timeout: float = 0.0,
    max_body: int = DEFAULTS.max_body,
    rate_limit: int = 0,
    secret: str | None = None,
) -> Service:
    """The service over a started engine, with the system's clocks and entropy."""
    metrics = Metrics()
    fanout = Fanout(
        engine,
        wall_s=time.time,
        monotonic_ns=time.monotonic_ns,
        timeout_s=request_timeout,
        observe=metrics.ended,
    )
    metrics.watch(lambda: fanout.load)
    return Service(
        catalogue=Catalogue(models, unknown_status=unknown_model_status),
        fanout=fanout,
        metrics=metrics,
        new_tail=new_tail,
        draw_seed=lambda: secrets.randbits(63),
        api_keys=api_keys,
        strict_requests=strict_requests,
        ping_s=ping_s,
        wire_profile=wire_profile,
        reasoning_field=reasoning_field,
        max_body=max_body,
        rate_limit=rate_limit,
        pad=lambda length: secrets.token_urlsafe(length)[:length],
        secret=secrets.token_bytes(32) if secret is None else secret.encode(),
    )


def make_app(service: Service) -> Quart:
    """The ASGI application; ``running`` must be entered around its life."""
    app = _bare_app(service.new_tail)
    app.config["MAX_CONTENT_LENGTH"] = service.max_body
    metrics.install(app, service)
    header_limit.install(app)
    authentication.install(app, service.api_keys)
    rate_limit.install(app, service)
    app.register_blueprint(health.blueprint(partial(health.condition_of, service)))
    for routes in (metrics, models, completions, chat, responses, tokenize):
        app.register_blueprint(routes.blueprint(service))
    return app


def make_starting_app(api_keys: tuple[str, ...] = ()) -> Quart:
    """What is served while the model is loaded."""
    app = _bare_app(new_tail)
    header_limit.install(app)
    authentication.install(app, api_keys)
    starting.install(app)
    return app


def _bare_app(new_tail: Callable[[], str]) -> Quart:
    """An application without routes, whose errors are ours."""
    app = Quart("antiphon", static_folder=None)
    app.asgi_http_class = AntiphonHTTPConnection
    app.url_map.merge_slashes = False
    app.config.update(
        PROVIDE_AUTOMATIC_OPTIONS=False,
        # A unary answer takes as long as its tokens do; a client that leaves ends it.
        RESPONSE_TIMEOUT=None,
    )
    error_pages.install(app, new_tail)
    return app


def new_tail() -> str:
    """A fresh id tail, by the system's clock and entropy."""
    return uuid7_hex(time.time_ns() // 1_000_000, secrets.token_bytes(10))


@asynccontextmanager
async def running(service: Service, grace_s: float = 0.0) -> AsyncIterator[None]:
    """Carry the engine's frames while the block runs, then stop the engine.

    At the end every open request gets ``grace_s`` seconds, then its terminal event.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.fanout.consume)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await service.fanout.drain(grace_s)


async def serve_forever(config: Config, say: Callable[[str], None]) -> None:
    """Listen, load, say so, and answer until a signal ends it. Raises ``StartupError``.

    The port is bound first: when it is taken, nobody waits for a model to load in vain. While it
    is loaded, probes are answered and everything else is refused for the time being.
    """
    with bind(
        config.host, config.port, certfile=config.certfile, keyfile=config.keyfile
    ) as listener:
        say("Loading …")
        door = Door(make_starting_app(config.api_key))
        ended = asyncio.Event()
        failures: list[StartupError] = []

        async def load_and_open() -> None:
            try:
                async with loaded(config, listener.url, say) as service:
                    door.drain = partial(service.fanout.drain, config.grace)
                    door.app = make_app(service)
                    await anyio.sleep_forever()
            except StartupError as failure:
                failures.append(failure)
                ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load_and_open)
            await serve(door, listener, drain=lambda: door.drain(), ended=ended)
            tasks.cancel_scope.cancel()
        if failures:
            raise failures[0]


@asynccontextmanager
async def loaded(config: Config, url: str, say: Callable[[str], None]) -> AsyncIterator[Service]:
    """The service while it runs, once its model is loaded; then it is said where it is.

    Raises ``StartupError``.
    """
    load = load_replay if config.engine == "replay" else load_torch
    try:
        engine, models, example = await load(config)
    except EngineStartError as error:
        raise StartupError(str(error)) from None
    service = make_service(
        engine,
        models,
        api_keys=config.api_key,
        strict_requests=config.strict_requests,
        ping_s=config.sse_ping_interval,
        wire_profile=config.wire_profile,
        reasoning_field=config.reasoning_field,
        unknown_model_status=config.unknown_model_status,
        request_timeout=config.request_timeout,
        max_body=config.max_body,
        rate_limit=config.rate_limit,
        secret=config.secret,
    )
    async with running(service):
        for line in greeting(config, models, example, url):
            say(line)
        yield service


Loaded = tuple[EnginePort, list[ServedModel], ServedModel]
"""An engine, the models it serves, and the one to try first."""


async def load_torch(config: Config) -> Loaded:
    """The torch engine with one model under each of its public names."""
    # torch takes seconds to import and a replay server never needs it.
    from antiphon.engines.torch import TorchEngine

    files = await to_thread.run_sync(resolve, config.model)
    engine = TorchEngine(
        files,
        device=config.device,
        dtype=config.dtype,
        threads=config.threads,
        max_running=config.max_running,
    )
    prompter = await to_thread.run_sync(TextPrompter.load, files)
    info = await engine.start()
    created = int(time.time())
    models = [
        ServedModel(id=name, created=created, prompter=prompter, info=info)
        for name in config.served_model_name or (files.name,)
    ]
    return engine, models, models[0]


def _calls_alone(recording: Recording) -> Spec:
    """The same family where reasoning is text like any other."""
    spec = _format(recording, recording.family.rpartition("+")[2])
    return spec if any(mode.calls for mode in spec.modes.values()) else PLAIN


async def load_replay(config: Config) -> Loaded:
    """The replay engine with one model per recording."""
    recordings = load_recordings(config.fixtures or DEFAULT_FIXTURES)
    try:
        pace = Pace.parse(config.pace)
    except ValueError as error:
        raise StartupError(f"--pace: {error}") from None
    engine = ReplayEngine(recordings, pace=pace)
    info = await engine.start()
    models = recorded_models(recordings, info, int(time.time()))
    example = next((model for model in models if recordings[model.id].answers), models[0])
    return engine, models, example


def recorded_models(
    recordings: Mapping[str, Recording], info: EngineInfo, created: int
) -> list[ServedModel]:
    """A model for each recording. Raises ``StartupError`` for a family that is not known."""
    return [
        ServedModel(
            id=name,
            created=created,
            prompter=ReplayPrompter(
                recording.prompt_tokens, recording.tokenizer, turns=recording.turns
            ),
            info=info,
            format=_format(recording, recording.family),
            format_of_calls=_calls_alone(recording),
        )
        for name, recording in recordings.items()
    ]


def _format(recording: Recording, name: str) -> Spec:
    """How a family marks reasoning and calls. Raises ``StartupError`` for one that is not known."""
    try:
        return family(name)
    except KeyError as error:
        raise StartupError(f"{recording.name}: {error.args[0]}") from None
