"""The library as a whole: what it may import, that nothing assigns to an event, its README."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import responsory
from responsory.commands import COMMANDS
from responsory.events import EVENTS
from responsory.projections import response_body
from responsory.testing import check_log, fold_responses

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

PACKAGE = Path(responsory.__file__).parent
ROOT = Path(__file__).parents[2]
README = ROOT / "statemachines" / "README.md"
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
    if path.name not in ("immutable.py", "command.py"):  # the edges
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


BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
ELSEWHERE = ("from starlette", "from aiohttp")
"""Signs of the blocks that need more packages: ``tests/conformance/handlers`` runs those."""


def test_every_block_of_the_readme_is_run() -> None:
    assert {language for language, _ in BLOCKS} == {"python"}
    for sign in ELSEWHERE:
        assert sum(sign in code for _, code in BLOCKS) == 1


def test_the_readme_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    program: dict[str, Any] = {"__name__": "example"}
    printed: list[str] = []
    for _, code in BLOCKS:
        if not any(sign in code for sign in ELSEWHERE):
            exec(compile(code, str(README), "exec"), program)
            printed.append(capsys.readouterr().out)
    first, *others = (text for text in printed if text)
    assert first.startswith("event: response.created\ndata: {")
    assert first.endswith("data: [DONE]\n\nHi there \n")
    assert '"text":"Hi there "' in first
    assert others == ["the deltas after sequence number 7 were dropped\n"]


@pytest.mark.parametrize("fails", [False, True])
def test_the_readme_answers_an_engine(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    (code,) = (code for _, code in BLOCKS if "async def answer(" in code)
    program: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(README), "exec"), program)

    async def broken(prompt: str) -> AsyncGenerator[str]:
        yield prompt
        raise RuntimeError("out of memory")

    async def frames() -> list[bytes]:
        engine = broken if fails else program["engine"]
        return [frame async for frame in program["answer"](engine("hi"))]

    sent = asyncio.run(frames())
    (log,) = program["logs"].values()
    check_log(log[:])
    assert fold_responses(sent) == response_body(log)
    assert response_body(log)["status"] == ("failed" if fails else "completed")
    assert sent[-1].endswith(b"data: [DONE]\n\n")
    assert ("out of memory" in caplog.text) is fails


def test_the_readme_names_every_command_and_event() -> None:
    text = README.read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    for command in COMMANDS:
        fields = [field.name for field in getattr(command, "__attrs_attrs__", ())]
        call = f"`{command.__name__}({', '.join(fields)})`"
        assert sum(call in line for line in tables) == 1, call
    for event in EVENTS:
        assert sum(f"`{event.__name__}`" in line.split("|")[1] for line in tables) == 1


def test_every_guarantee_of_the_readme_names_a_test() -> None:
    section = README.read_text(encoding="utf-8").split("\n## What holds\n")[1].split("\n## ")[0]
    named = re.findall(r"`(?:(tests/\w+)/)?(\w+\.py)::(\w+)`", section)
    assert len(named) >= section.count("\n* ") > 10
    assert len(named) == section.count("::")
    for folder, file, test in named:
        source = ROOT / (folder or "tests/responsory") / file
        assert f"\ndef {test}(" in source.read_text(encoding="utf-8"), (source, test)


def test_modules_are_small() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    assert lengths[len(lengths) // 2] < 120
    assert lengths[-1] <= 300


def test_no_status_is_compared_outside_the_table() -> None:
    """States are decided in the table alone; projections read what it said."""
    for path in PACKAGE.joinpath("projections").glob("*.py"):
        assert ".state" not in path.read_text(encoding="utf-8").replace("responsory.states", "")
