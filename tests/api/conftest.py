"""The application over the recordings of the repository, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from quart.typing import TestClientProtocol

from antiphon.api.service import Service
from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.engines.pace import Pace
from antiphon.engines.recording import load_recordings
from antiphon.engines.replay import ReplayEngine
from antiphon.loading import recorded_models

FIXTURES = Path(__file__).parents[2] / "fixtures"
CREATED = 1_764_500_000


class Bench:
    """A served application: ``client`` speaks to it, ``service`` shows its inside."""

    def __init__(self, service: Service, client: TestClientProtocol) -> None:
        self.service = service
        self.client = client


async def benches(*keys: str, strict: bool = False) -> AsyncIterator[Bench]:
    recordings = load_recordings(FIXTURES)
    engine = ReplayEngine(recordings, pace=Pace.FULL)
    info = await engine.start()
    models = recorded_models(recordings, info, CREATED)
    service = make_service(engine, models, Config(api_key=keys, strict_requests=strict))
    async with running(service):
        yield Bench(service, make_app(service).test_client())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async for each in benches():
        yield each


@pytest.fixture
async def locked_bench() -> AsyncIterator[Bench]:
    async for each in benches("first-key", "second-key"):
        yield each


@pytest.fixture
async def strict_bench() -> AsyncIterator[Bench]:
    async for each in benches(strict=True):
        yield each
