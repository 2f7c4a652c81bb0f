"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

from antiphon.models.files import ModelFiles, resolve

pytest_plugins = ("golden.update", "wire.plugin")

# A deadline is a wall time, and machines that run tests are shared.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The host is asyncio, so async tests run on it alone."""
    return "asyncio"


@pytest.fixture(scope="session")
def default_model() -> ModelFiles:
    """The default model in the user's cache, fetched if it is not there yet."""
    return resolve(None)
