"""The telling application, once for each test that asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from wire.told import Told, told


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    """Its engine can do everything."""
    async for each in told(tmp_path_factory.mktemp("model")):
        yield each


@pytest.fixture(scope="module")
async def free(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    """Its engine cannot be held to a grammar."""
    async for each in told(tmp_path_factory.mktemp("free"), without="grammar"):
        yield each
