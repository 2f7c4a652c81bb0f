"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import pytest

from antiphon.models.files import ModelFiles, resolve


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The host is asyncio, so async tests run on it alone."""
    return "asyncio"


@pytest.fixture(scope="session")
def default_model() -> ModelFiles:
    """The default model in the user's cache, fetched if it is not there yet."""
    return resolve(None)
