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
    lacks = frozenset({"thought_budget", "grammar", "forced_calls"})
    async for each in told(tmp_path_factory.mktemp("free"), without=lacks):
        yield each


@pytest.fixture(scope="module")
async def formal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    """Its engine can be held to a grammar, and to no call."""
    async for each in told(tmp_path_factory.mktemp("formal"), without=frozenset({"forced_calls"})):
        yield each
