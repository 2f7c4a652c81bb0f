"""The application over the fixture model: every answer is a true forward pass."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import tokenizers

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.loading import load
from api.tinychat.asking import Asking
from known_replies import FOLDER

CONFIG = Config(
    model=str(FOLDER), device="cpu", dtype="float32", weights="float", max_running=8, max_waiting=64
)


@pytest.fixture(scope="module")
def tokenizer() -> tokenizers.Tokenizer:
    """The library's own, to hold the server's counts against."""
    return tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
async def asking() -> AsyncIterator[Asking]:
    """One server for a file of tests: its answers do not depend on what was asked before."""
    engine, models, _ = await load(CONFIG)
    service = make_service(engine, models, CONFIG)
    async with running(service):
        yield Asking(service, make_app(service).test_client())
