"""Applications that live as long as a module's examples."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest
from quart.typing import TestClientProtocol

from antiphon.app import make_app, make_service, running
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.options import EngineOptions
from antiphon.prompting.prompter import TextPrompter
from antiphon.runs.catalogue import ServedModel
from api.conftest import Bench, benches
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf
from fuzz.size import BODIES, SEED
from prompting import vocabularies
from transport.hosting import GUARD_S
from wire.told import told

TINY = "tiny"
ENOUGH = 100
"""So many answers, and one of them is no refusal."""


def pytest_report_header() -> str:
    return f"fuzz: {BODIES} bodies, seed {SEED}"


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Recorded failures are logged, thousands of them; what matters is in the answers."""
    log = logging.getLogger("antiphon")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


@attrs.define
class Fuzzed:
    """An application, and how often each path of it answered with each status."""

    app: Any
    """A ``Bench`` or a ``Told``."""
    statuses: Counter[tuple[str, int]] = attrs.field(factory=Counter)

    @property
    def client(self) -> TestClientProtocol:
        client: TestClientProtocol = self.app.client
        return client

    async def close(self) -> None:
        """Whatever was sent, no run is left behind; and it was not refusals alone that came."""
        with anyio.fail_after(GUARD_S):
            while self.app.service.fanout.running:
                await anyio.lowlevel.checkpoint()
        for path in {path for path, _ in self.statuses}:
            answered = sum(count for (at, _), count in self.statuses.items() if at == path)
            assert self.statuses[path, 200] > 0 or answered < ENOUGH, f"{path} refused everything"


@pytest.fixture(scope="module")
async def replayed() -> AsyncIterator[Fuzzed]:
    """The recordings of the repository."""
    async for each in benches():
        fuzzed = Fuzzed(each)
        yield fuzzed
        await fuzzed.close()


@pytest.fixture(scope="module")
async def strict() -> AsyncIterator[Fuzzed]:
    """The same, and unknown fields are refused."""
    async for each in benches(strict=True):
        fuzzed = Fuzzed(each)
        yield fuzzed
        await fuzzed.close()


@pytest.fixture(scope="module")
async def tiny(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fuzzed]:
    """A torch engine over a random model of a small context, with a real vocabulary."""
    folder: Path = tmp_path_factory.mktemp("tiny")
    reference = vocabularies.train_byte_level(vocabularies.smollm_split())
    vocabularies.write_folder(folder, reference, chat_template=vocabularies.CHATML)
    shape = Shape(vocab=reference.get_vocab_size(), context=96)
    files = write_hf(folder, hf_config(shape), random_weights(shape))
    options = EngineOptions(files=files, device="cpu", dtype="float32", max_running=8)
    engine = TorchEngine(options)
    info = await engine.start()
    model = ServedModel(id=TINY, created=1, prompter=TextPrompter.load(files), info=info)
    service = make_service(engine, [model])
    async with running(service):
        fuzzed = Fuzzed(Bench(service, make_app(service).test_client()))
        yield fuzzed
        await fuzzed.close()


@pytest.fixture(scope="module")
async def told_all(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fuzzed]:
    """A model with a template, tools, reasoning and an engine that can do all that is asked."""
    async for each in told(tmp_path_factory.mktemp("told")):
        fuzzed = Fuzzed(each)
        yield fuzzed
        await fuzzed.close()
