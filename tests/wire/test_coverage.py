"""Every row of the contract is held by a test, and the document says by which."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from wire.fields import CLASSES, REFUSALS, parameters, without_effect
from wire.literals import names_in
from wire.page import page
from wire.plugin import elsewhere, filled, of_whole_suite
from wire.rows import IGNORED, REFUSED, Row, held, load, named, names_of

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "wire-coverage.md"
ROWS = load()


@pytest.fixture(scope="module")
def names(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[str]]:
    """What each test of the repository names; collected in a process if it was not here."""
    whole = of_whole_suite(request.config)
    if whole is not None:
        return whole
    path = tmp_path_factory.mktemp("wire") / "names.json"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--wire-names={path}", "tests"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    collected: dict[str, list[str]] = json.loads(path.read_text())
    return collected | elsewhere(ROOT)


def test_every_name_is_a_row(names: Mapping[str, list[str]]) -> None:
    for test, rows in names.items():
        for name in rows:
            assert named(name, ROWS), test


def test_every_row_is_held(names: Mapping[str, list[str]]) -> None:
    """A parameter by what it does: that it is read proves nothing."""
    doing = {test: rows for test, rows in names.items() if not test.startswith("tests/requests/")}
    read = {
        test: [row for row in rows if not row.startswith("param:")] for test, rows in names.items()
    }
    tests = held(read | doing, ROWS)
    assert [row.id for row in ROWS.values() if row.due and not tests[row.id]] == []


def test_the_document_is_fresh(
    names: Mapping[str, list[str]], request: pytest.FixtureRequest
) -> None:
    text = page(ROWS, held(names, ROWS))
    if request.config.getoption("--update-wire-coverage"):
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == text, "pytest tests/wire --update-wire-coverage"


@pytest.mark.parametrize("endpoint", CLASSES)
def test_every_field_of_a_request_is_a_row(endpoint: str) -> None:
    prefix = f"param:{endpoint}."
    listed = {
        row.id.removeprefix(prefix)
        for row in ROWS.values()
        if row.id.startswith(prefix) and row.says not in (REFUSED, IGNORED)
    }
    # A field may be one that its class knows in order to refuse it.
    fields = parameters(endpoint) - set(names_of(ROWS, endpoint, REFUSED))
    assert sorted(fields ^ listed) == []


@pytest.mark.parametrize("endpoint", REFUSALS)
def test_every_name_that_is_refused_or_ignored_is_a_row(endpoint: str) -> None:
    assert sorted(names_of(ROWS, endpoint, REFUSED)) == sorted(REFUSALS[endpoint])
    assert sorted(names_of(ROWS, endpoint, IGNORED)) == sorted(without_effect(endpoint))


def test_a_star_names_every_endpoint_that_has_the_parameter() -> None:
    assert named("param:*.n", ROWS) == ["param:chat.n", "param:completions.n", "param:responses.n"]
    with pytest.raises(KeyError):
        named("param:*.nothing", ROWS)
    with pytest.raises(KeyError):
        named("F99", ROWS)


def test_a_name_can_be_made_of_the_tests_parameters() -> None:
    params = {"row": Row("F1", "x"), "endpoint": "chat", "param": "stop[1]"}
    assert list(filled("<row.id>", params)) == ["F1"]
    assert list(filled("param:<endpoint>.<param>", params)) == ["param:chat.stop"]
    assert list(filled("param:<endpoint>.zork<param>", params)) == []
    assert list(filled("F1", params)) == ["F1"]


def test_a_test_that_names_a_row_holds_it() -> None:
    rows = {"F1": Row("F1", "x"), "F2": Row("F2", "later: y")}
    assert held({"b": ["F1"], "a": ["F1"]}, rows) == {"F1": ["a", "b"], "F2": []}
    assert (rows["F1"].due, rows["F2"].due) == (True, False)
    assert "| F1 | x | `a`<br>`b` |" in page(rows, held({"b": ["F1"], "a": ["F1"]}, rows))


def test_names_are_read_from_text() -> None:
    source = """
pytestmark = pytest.mark.wire("F1")
@pytest.mark.wire("S1", "param:chat.n")
async def test_one(): pass
def test_two(): pass
def other(): pass
"""
    assert names_in(source) == {"test_one": {"F1", "S1", "param:chat.n"}, "test_two": {"F1"}}
