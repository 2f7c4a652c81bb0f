"""Packages that only ``nox -s conformance`` installs."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

import pytest


def conformance_package(name: str, *, only_found: bool = False) -> Any:
    """The package; with ``only_found`` it is not imported here, and None is returned.

    Without it the module's tests are skipped, except where the environment variable
    ``CONFORMANCE=1`` says that it must be there: then a missing one is an error.
    """
    needed = os.environ.get("CONFORMANCE") == "1"
    if not needed and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} comes with `nox -s conformance`", allow_module_level=True)
    return None if only_found else importlib.import_module(name)
