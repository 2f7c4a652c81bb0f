"""The library as a whole: what it may import, that nothing assigns to an event, its README."""

from __future__ import annotations

import ast
import asyncio
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

import responsory
from responsory.commands import COMMANDS
from responsory.events import EVENTS, Completed
from responsory.projections import response_body
from responsory.segments import FORMATS, Piece, Segmenter
from responsory.states import Status
from responsory.testing import check_log, fold_responses
from responsory.values import ItemStatus

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from responsory import EventLog

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


@pytest.mark.wire("S26")
def test_importing_the_library_loads_nothing_else() -> None:
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import responsory, responsory.segments, responsory.projections, responsory.testing\n"
        "import responsory.check, responsory.draw\n"
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


BLOCKS: list[str] = [
    code
    for language, code in re.findall(
        r"```(\w*)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    if language == "python"
]
ELSEWHERE = ("from starlette", "from aiohttp")
"""Signs of the blocks that need more packages: ``tests/conformance/handlers`` runs those."""


def run(code: str) -> dict[str, Any]:
    """What a block, or several in a row, defines."""
    program: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, str(README), "exec"), program)
    return program


def block(sign: str) -> str:
    """The one block that needs nothing more and has ``sign`` in it."""
    (code,) = (code for code in HERE if sign in code)
    return code


HERE = [code for code in BLOCKS if not any(sign in code for sign in ELSEWHERE)]


def test_every_block_of_the_readme_is_run() -> None:
    assert README.read_text(encoding="utf-8").count("```") == 2 * len(BLOCKS)
    assert len(BLOCKS) - len(HERE) == 3  # the three that the handlers' tests name


def test_the_readme_runs_from_top_to_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    program: dict[str, Any] = {"__name__": "example"}
    printed: list[str] = []
    for code in HERE:
        exec(compile(code, str(README), "exec"), program)
        printed.append(capsys.readouterr().out)
    first, *others = (text for text in printed if text)
    assert first.startswith("event: response.created\ndata: {")
    assert first.endswith("data: [DONE]\n\nHi there \n")
    assert '"text":"Hi there "' in first
    assert others == ["the deltas after sequence number 7 were dropped\n"]


@pytest.mark.parametrize(
    ("stop", "text", "hit"),
    [
        ("END", "Hi there ", "END"),
        ("more!", "Hi there END and more", None),  # its start is held to the end
        ("nowhere", "Hi there END and more", None),
    ],
)
def test_the_first_example_loses_no_text(
    stop: str, text: str, hit: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    code = block('print(chat_body([log])["choices"][0]')
    assert code.count('stop=["END"]') == 1
    program = run(code.replace('stop=["END"]', f'stop=["{stop}"]'))
    log = program["log"]
    assert capsys.readouterr().out.endswith(f"data: [DONE]\n\n{text}\n")
    check_log(log[:])
    body = response_body(log)
    assert body["output"][0]["content"][0]["text"] == text
    assert body["usage"]["output_tokens"] == 6
    assert log[-1].stop == hit


def answered(pieces: AsyncGenerator[Piece], **options: Any) -> tuple[list[bytes], EventLog]:
    """The frames of the README's ``answer``, and the log that it left."""
    program = run(block("async def answer(pieces"))

    async def frames() -> list[bytes]:
        return [frame async for frame in program["answer"](pieces, Segmenter(**options))]

    sent = asyncio.run(frames())
    (log,) = program["logs"].values()
    check_log(log[:])
    assert fold_responses(sent) == response_body(log)
    assert sent[-1].endswith(b"data: [DONE]\n\n")
    return sent, log


@pytest.mark.parametrize("fails", [False, True])
def test_the_readme_answers_an_engine(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def engine() -> AsyncGenerator[Piece]:
        yield Piece("hi", (1,))
        if fails:
            raise RuntimeError("out of memory")

    _, log = answered(engine())
    assert response_body(log)["status"] == ("failed" if fails else "completed")
    assert response_body(log)["usage"]["output_tokens"] == 1
    assert ("out of memory" in caplog.text) is fails


@pytest.mark.parametrize("stop", ["ED", "d!", None])
def test_the_answer_stops_at_a_stop_string_and_loses_nothing_else(
    stop: str | None,
) -> None:
    asked: list[str] = []

    async def engine() -> AsyncGenerator[Piece]:
        for word in ("one ", "twE", "D", " and"):
            asked.append(word)
            yield Piece(word, (1,))

    hit = stop == "ED"
    _, log = answered(engine(), stop=[stop] if stop else [])
    text = "one tw" if hit else "one twED and"
    assert response_body(log)["output"][0]["content"][0]["text"] == text
    assert asked == (["one ", "twE", "D"] if hit else ["one ", "twE", "D", " and"])
    ending = log[-1]
    assert isinstance(ending, Completed)
    assert (ending.stop, ending.usage.output_tokens) == ((stop, 3) if hit else (None, 4))


def test_the_readme_names_every_command_and_event() -> None:
    text = README.read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    for command in COMMANDS:
        fields = [field.name for field in getattr(command, "__attrs_attrs__", ())]
        call = f"`{command.__name__}({', '.join(fields)})`"
        assert sum(call in line for line in tables) == 1, call
    for event in EVENTS:
        assert sum(f"`{event.__name__}`" in line.split("|")[1] for line in tables) == 1


def test_the_readme_names_every_family() -> None:
    section = README.read_text(encoding="utf-8").split("\n## Families\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(FORMATS)


@pytest.mark.parametrize("code", BLOCKS)
def test_the_readme_uses_public_names_alone(code: str) -> None:
    section = README.read_text(encoding="utf-8").split("\n## What is public\n")[1]
    section = section.split("\n## ")[0]
    public = {
        name.removeprefix("responsory.")
        for name in re.findall(r"`(?:responsory)?\.([a-z.]+)`", section)
    }
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("responsory"):
            module = importlib.import_module(str(node.module))
            names = getattr(module, "__all__", None)
            for alias in node.names:
                assert not alias.name.startswith("_")
                assert names is None or alias.name in names
            named = str(node.module).partition(".")[2]
            assert named == "" or named in public


def test_the_readme_has_no_link_that_dies_elsewhere() -> None:
    """It is also the description of the distribution, where there is no repository around it."""
    links = re.findall(r"\]\(([^)]*)\)", README.read_text(encoding="utf-8"))
    assert links
    assert all(link.startswith("https://") for link in links)


def test_every_event_says_when_it_comes() -> None:
    for event in EVENTS:
        assert (vars(event).get("__doc__") or "").endswith("."), event


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


COMPARE_STATES = {
    "transitions.py": "the table: what a command gives depends on the state",
    "response.py": "a machine in another state looks its commands up in another row",
    "grammar.py": "a delta that goes on with the open part is told by the state",
    "draw/exploration.py": "draws the table, state by state",
}
"""The modules that may compare a state, and why."""


def compared(tree: ast.Module) -> Iterator[ast.expr]:
    """Everything that is compared, or matched, in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            yield node.value


def compares_states(source: str) -> bool:
    """Whether a module compares a member of State, a name that it has from ``responsory.states``,
    or the ``state`` of anything."""
    tree = ast.parse(source)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "responsory.states"
        for alias in node.names
    }
    return any(
        (isinstance(part, ast.Attribute) and part.attr == "state")
        or (isinstance(part, ast.Name) and part.id in names)
        for node in compared(tree)
        for part in ast.walk(node)
    )


def test_no_state_is_compared_outside_the_table() -> None:
    """States are decided in the table alone; what else there is reads what it said."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if compares_states(path.read_text(encoding="utf-8"))
    }
    assert found == COMPARE_STATES.keys()


def test_no_projection_compares_a_status() -> None:
    words = {*get_args(Status), *get_args(ItemStatus)}
    assert "in_progress" in words
    for path in PACKAGE.joinpath("projections").glob("*.py"):
        for node in compared(ast.parse(path.read_text(encoding="utf-8"))):
            literals = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            assert not literals & words, (path, ast.unparse(node))
            names = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            assert "terminal" not in names, (path, ast.unparse(node))


@pytest.mark.parametrize(
    "code",
    [
        "m.state is before",
        "now is not State.IDLE",
        "State.IDLE == now",
        "now in OPEN",
        "now in (State.IDLE, State.CALL)",
        "OPEN_FOR[kind] is m.state",
        "match now:\n    case State.IDLE:\n        pass",
    ],
)
def test_a_compared_state_is_seen(code: str) -> None:
    assert compares_states(f"from responsory.states import OPEN, State\n{code}\n")


@pytest.mark.parametrize("code", ["event.item == m.item", "kind in OPEN", "m.state = State.IDLE"])
def test_other_code_compares_no_state(code: str) -> None:
    assert not compares_states(f"from responsory.states import State\n{code}\n")
