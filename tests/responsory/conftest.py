"""What the golden tests share is imported by its own name, wherever this folder is copied to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "goldens"))


# Machines that run tests are shared, and these are judgements of wall time.
settings.register_profile(
    "no wall time", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no wall time")


def pytest_configure(config: pytest.Config) -> None:
    """This folder is run away from the others too, where nobody else says what the marker is."""
    config.addinivalue_line("markers", "wire(*rows): rows of the wire's contract that a test holds")
