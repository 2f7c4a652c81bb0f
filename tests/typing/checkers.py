"""Both type checkers say of the files beside this one what is marked in them, and nothing else.

``accepted.py`` holds right uses, ``rejected.py`` wrong ones. Needs mypy and pyright, which the
other tests do not, so the name of this file keeps it out of a run of them all::

    pytest tests/typing/checkers.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import responsory

HERE = Path(__file__).parent
MARK = re.compile(r"# error: (?P<mypy>[a-z -]+) \| (?P<pyright>[A-Za-z ]+)$")
FILES = ("accepted.py", "rejected.py", "checkers.py")


def report(*arguments: str) -> str:
    """What a checker prints. It reads its settings from this folder."""
    run = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # 0: nothing wrong, 1: errors found. Anything else is a checker that did not work.
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout


def mypy(*files: str) -> set[tuple[str, int, str]]:
    """(file, line, code) of every error."""
    lines = report("mypy", "--config-file", "mypy.ini", "--output", "json", *files).splitlines()
    errors = [json.loads(line) for line in lines]
    return {(Path(error["file"]).name, error["line"], error["code"]) for error in errors}


def pyright(*files: str) -> set[tuple[str, int, str]]:
    """(file, line, rule) of every error and warning."""
    python = ("--pythonpath", sys.executable)
    errors = json.loads(report("pyright", "--outputjson", *python, *files))["generalDiagnostics"]
    return {
        (Path(error["file"]).name, error["range"]["start"]["line"] + 1, error.get("rule", "syntax"))
        for error in errors
    }


def marks(checker: str) -> set[tuple[str, int, str]]:
    """(file, line, rule) of every mark."""
    lines = (HERE / "rejected.py").read_text(encoding="utf-8").splitlines()
    found = [(number, MARK.search(line)) for number, line in enumerate(lines, 1)]
    return {
        ("rejected.py", number, rule)
        for number, mark in found
        if mark is not None
        for rule in mark[checker].split()
    }


def test_both_checkers_are_asked_about_the_same_lines() -> None:
    lines = {number for _, number, _ in marks("mypy")}
    assert lines == {number for _, number, _ in marks("pyright")}
    assert len(lines) > 50
    text = (HERE / "rejected.py").read_text(encoding="utf-8")
    assert text.count("# error: ") == len(lines) + 1, "a mark that is not read, beside the example"


def test_mypy() -> None:
    assert mypy(*FILES) == marks("mypy")


def test_pyright() -> None:
    assert pyright(*FILES) == marks("pyright")


def test_pyright_finds_nothing_in_the_library() -> None:
    assert pyright(str(Path(responsory.__file__).parent)) == set()


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_that_cannot_read_a_file_fails(checker: object) -> None:
    assert callable(checker)
    with pytest.raises(AssertionError):
        checker("missing.py")
