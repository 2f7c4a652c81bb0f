"""The option ``--update-golden``, a plugin of its own: options must be known before any test."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write fixtures/golden anew from the recordings, instead of comparing",
    )
