"""Applications that live as long as a module's examples."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from antiphon.app import make_app, make_service, running
from antiphon.engines.torch import TorchEngine
from antiphon.prompting.prompter import TextPrompter
from antiphon.runs.catalogue import ServedModel
from api.conftest import Bench, benches
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf
from fuzz.size import BODIES, SEED
from prompting import vocabularies
from transport.hosting import GUARD_S
from wire.told import Told, told

TINY = "tiny"


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


@pytest.fixture(scope="module")
async def replayed() -> AsyncIterator[Bench]:
    """The recordings of the repository."""
    async for each in benches():
        yield each
        await nothing_runs(each)


@pytest.fixture(scope="module")
async def strict() -> AsyncIterator[Bench]:
    """The same, and unknown fields are refused."""
    async for each in benches(strict=True):
        yield each
        await nothing_runs(each)


@pytest.fixture(scope="module")
async def tiny(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """A torch engine over a random model of a small context, with a real vocabulary."""
    folder: Path = tmp_path_factory.mktemp("tiny")
    reference = vocabularies.train_byte_level(vocabularies.smollm_split())
    vocabularies.write_folder(folder, reference)
    shape = Shape(vocab=reference.get_vocab_size(), context=96)
    files = write_hf(folder, hf_config(shape), random_weights(shape))
    engine = TorchEngine(files, device="cpu", dtype="float32", threads=1, max_running=8)
    info = await engine.start()
    model = ServedModel(id=TINY, created=1, prompter=TextPrompter.load(files), info=info)
    service = make_service(engine, [model])
    async with running(service):
        bench = Bench(service, make_app(service).test_client())
        yield bench
        await nothing_runs(bench)


@pytest.fixture(scope="module")
async def told_all(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    """A model with a template, tools, reasoning and an engine that can do all that is asked."""
    async for each in told(tmp_path_factory.mktemp("told")):
        yield each


async def nothing_runs(bench: Bench) -> None:
    """Whatever was sent, no run is left behind."""
    with anyio.fail_after(GUARD_S):
        while bench.service.fanout.running:
            await anyio.lowlevel.checkpoint()
