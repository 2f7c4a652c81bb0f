"""Which rows of the wire's contract each test of the suite names: ``@pytest.mark.wire("F1")``.

A plugin of its own: options must be known before any test, and a test sees what was collected.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from wire.literals import names_in
from wire.rows import load, nearest

ROWS = pytest.StashKey[dict[str, list[str]]]()
ROW_IDS = frozenset(load())
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
                params = (
                    item.callspec.params
                    if isinstance(item, pytest.Function) and hasattr(item, "callspec")
                    else {}
                )
                for name in marker.args:
                    found.setdefault(test, set()).update(filled(name, params))
    names = {test: sorted(rows) for test, rows in sorted(found.items())}
    config.stash[ROWS] = names
    target = config.getoption("--wire-names")
    if target is not None:
        target.write_text(json.dumps(names))


def filled(name: str, params: Mapping[str, Any]) -> Iterator[str]:
    """The name with the test's own parameters: ``error:<row.code>`` is that of ``row``.

    Parameters also tell places inside a field; such a name is that of the field, if it is a row.
    """
    if "<" not in name:
        yield name
        return
    made = re.sub(r"<([\w.]+)>", lambda mark: _parameter(mark[1], params), name)
    if (row := nearest(made, ROW_IDS)) is not None:
        yield row


def _parameter(path: str, params: Mapping[str, Any]) -> str:
    outer, _, inner = path.partition(".")
    value = params[outer]
    return str(operator.attrgetter(inner)(value) if inner else value)


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
