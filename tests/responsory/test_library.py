"""The library as a whole: what it may import, that nothing assigns to an event, its README."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import responsory

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(responsory.__file__).parent
README = PACKAGE.parent / "README.md"
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The top-level names of everything a module imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_are_the_standard_library_and_attrs(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"attrs", "responsory"}
    if path.name == "strategies.py":
        allowed |= {"hypothesis"}
    assert set(imported(path)) <= allowed
    # Sans-I/O, no clock, no randomness.
    never = {"socket", "asyncio", "time", "datetime", "random", "secrets", "uuid", "logging"}
    assert not set(imported(path)) & never
    if path.name != "immutable.py":
        assert "os" not in set(imported(path))


def test_importing_the_library_loads_nothing_else() -> None:
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import responsory, responsory.segments, responsory.projections, responsory.testing\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - sys.stdlib_module_names))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(out.stdout.split()) <= {"attr", "attrs", "responsory"}


def test_nothing_assigns_to_a_command_event_or_value() -> None:
    """The same life with really frozen classes gives the same frames."""
    script = (
        "from responsory.testing import a_response\n"
        "from responsory.projections import ResponsesStream, ChatStream, response_body\n"
        "from responsory.immutable import REALLY_FROZEN\n"
        "from responsory import EventLog, Usage\n"
        "made = a_response().reasoning('a').text('b', 'c').refusal('d').call('f', '{}').finish()\n"
        "log = EventLog.from_rows(made.log.rows()).compact()\n"
        "print(REALLY_FROZEN, response_body(log))\n"
        "print(ResponsesStream().feed(0, made.log[:]), ChatStream().feed(0, made.log[:]))\n"
        "try:\n"
        "    made.log[0].seq = 5\n"
        "except AttributeError:\n"
        "    print('frozen')\n"
    )

    def run(frozen: str) -> list[str]:
        out = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "RESPONSORY_FROZEN": frozen},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return out.stdout.splitlines()

    frozen, plain = run("1"), run("")
    assert frozen[0].startswith("True ")
    assert frozen[-1] == "frozen"
    assert [frozen[0].removeprefix("True "), frozen[1]] == [
        plain[0].removeprefix("False "),
        plain[1],
    ]


def test_checks_hold_without_assertions() -> None:
    """``python -O`` drops every assert; the public checks must not be among them."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path
    script = (
        "from responsory.testing import InvariantError, a_response, check_log, fold_chat\n"
        "made = a_response().text('a').finish()\n"
        "check_log(made.log[:])\n"
        "bad = [b'data: 1\\ndata: 2\\n\\n']\n"
        "for check, what in ((check_log, made.log[1:]), (fold_chat, bad)):\n"
        "    try:\n"
        "        check(what)\n"
        "    except InvariantError as error:\n"
        "        print(error)\n"
    )
    out = subprocess.run(
        [sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    first, second = out.stdout.splitlines()
    assert first == "seq is dense from 0"
    assert second.startswith("a frame has one line of data")


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out
    assert printed.startswith("event: response.created\ndata: {")
    assert printed.endswith("data: [DONE]\n\nHi there \n")
    assert '"text":"Hi there "' in printed


def test_modules_are_small() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    assert lengths[len(lengths) // 2] < 120
    assert lengths[-1] <= 300


def test_no_status_is_compared_outside_the_table() -> None:
    """States are decided in the table alone; projections read what it said."""
    for path in PACKAGE.joinpath("projections").glob("*.py"):
        assert ".state" not in path.read_text(encoding="utf-8").replace("responsory.states", "")
