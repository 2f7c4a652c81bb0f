"""Packages that only ``nox -s conformance`` installs."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def conformance_package(name: str) -> Any:
    """The package. Without it the module's tests are skipped, except where the environment variable
    ``CONFORMANCE=1`` says that it must be there: then a missing one is an error."""
    if os.environ.get("CONFORMANCE") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} comes with `nox -s conformance`")
