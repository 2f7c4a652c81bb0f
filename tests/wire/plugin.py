"""Which rows of the wire's contract each test of the suite names: ``@pytest.mark.wire("F1")``.

A plugin of its own: options must be known before any test, and a test sees what was collected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from wire.literals import names_in

ROWS = pytest.StashKey[dict[str, list[str]]]()
ELSEWHERE = "tests/conformance/"
"""These tests are read and not collected: where their packages are missing, some do not exist."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-wire-coverage",
        action="store_true",
        help="write docs/wire-coverage.md anew from the markers of all tests",
    )
    parser.addoption("--wire-names", type=Path, help="write the names of wire rows to this file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "wire(*rows): rows of the wire's contract that a test holds")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before anything is deselected."""
    found: dict[str, set[str]] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if not test.startswith(ELSEWHERE):
            for marker in item.iter_markers("wire"):
                found.setdefault(test, set()).update(marker.args)
    names = {test: sorted(rows) for test, rows in sorted(found.items())}
    config.stash[ROWS] = names
    target = config.getoption("--wire-names")
    if target is not None:
        target.write_text(json.dumps(names))


def of_whole_suite(config: pytest.Config) -> Mapping[str, list[str]] | None:
    """Test to names, if all tests of the repository were collected; else None."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return None
    return config.stash[ROWS] | elsewhere(config.rootpath)


def elsewhere(root: Path) -> dict[str, list[str]]:
    """Test to names of the tests that are only read."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / ELSEWHERE).rglob("*.py")):
        for test, names in names_in(path.read_text(encoding="utf-8")).items():
            found[f"{path.relative_to(root).as_posix()}::{test}"] = sorted(names)
    return found
