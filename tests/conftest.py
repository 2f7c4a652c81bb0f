"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from antiphon.models.files import ModelFiles, resolve

pytest_plugins = ("golden.update", "wire.plugin")

# Machines that run tests are shared, and these are judgements of wall time.
settings.register_profile(
    "no wall time", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no wall time")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a background job of a shell. Processes that tests start would ignore it as well, and a
    # test that interrupts one would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


EXIT = pytest.StashKey[Callable[[int], NoReturn]]()


def pytest_configure(config: pytest.Config) -> None:
    """A test that ends the process of the tests fails: else all of them would end, and well."""
    ours, leave = os.getpid(), os._exit
    config.stash[EXIT] = leave

    def watched(status: int) -> NoReturn:
        if os.getpid() == ours:
            raise AssertionError(f"a test ends the process of the tests, with status {status}")
        leave(status)

    os._exit = watched


def pytest_unconfigure(config: pytest.Config) -> None:
    os._exit = config.stash[EXIT]  # type: ignore[assignment]  # the same, as a value


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The host is asyncio, so async tests run on it alone."""
    return "asyncio"


@pytest.fixture(scope="session")
def default_model() -> ModelFiles:
    """The default model in the user's cache, fetched if it is not there yet."""
    return resolve(None)
