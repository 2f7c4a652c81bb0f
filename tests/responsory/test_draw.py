"""The drawn pages are fresh, the drawing says what the machine does, and a bad page is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from responsory.commands import COMMANDS, CallOpened, Command, Refusal
from responsory.draw import DrawError, alphabet, frames, redrawn, sections
from responsory.draw.__main__ import main
from responsory.draw.exploration import explore, rows
from responsory.events import EVENTS, Event
from responsory.response import Response
from responsory.states import State
from responsory.testing import check_log
from responsory.transitions import ROWS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "lifecycle.md"
NAMES = tuple(alphabet.alphabet())


def test_the_page_is_fresh() -> None:
    """Where this fails: ``python -m responsory.draw docs/lifecycle.md``."""
    drawn = sections()
    page = PAGE.read_bytes().decode()
    text, stale = redrawn(page, drawn)
    assert stale == []
    assert text == page
    for name in drawn:
        assert page.count(f"<!-- responsory.draw: {name} -->") == 1


# --- the search ---------------------------------------------------------------------------------


def test_every_state_is_found_by_a_log_that_leads_there() -> None:
    found = explore()
    assert {at.state for at in found} == set(State)
    for at, reached in found.items():
        check_log(reached.log)
        assert Response.replay(reached.log).view() == reached.machine.view()
        assert reached.machine.state is at.state
        assert tuple(reached.answers) == NAMES


def test_only_the_idle_state_needs_two_rows() -> None:
    labels = [row.label for row in rows(explore())]
    assert [label for label in labels if "," in label] == ["idle, no item yet"]
    assert len(labels) == len(State) + 1


def test_a_state_that_no_command_leads_to_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS.values():
        if CallOpened in row:
            monkeypatch.delitem(row, CallOpened)
    with pytest.raises(DrawError, match="no commands lead to `call`"):
        sections()


def test_examples_of_one_name_are_answered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ROWS[State.IDLE][CallOpened]

    def handler(machine: Any, command: CallOpened) -> list[Event]:
        return real(machine, command) if command.kind == "function" else []

    monkeypatch.setitem(ROWS[State.IDLE], CallOpened, handler)
    with pytest.raises(DrawError, match="CallOpened has several answers in `idle`"):
        sections()


def test_an_answer_that_no_name_explains_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ROWS[State.MESSAGE_TEXT][Refusal]

    def handler(machine: Any, command: Refusal) -> list[Event]:
        return real(machine, command) if machine.phase is None else []

    monkeypatch.setitem(ROWS[State.MESSAGE_TEXT], Refusal, handler)
    with pytest.raises(DrawError, match=r"`message\.text` has several answers"):
        sections()


def test_a_command_without_an_example_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pause(Command):
        """A command that someone adds."""

    monkeypatch.setattr(alphabet, "COMMANDS", (*COMMANDS, Pause))
    with pytest.raises(DrawError, match="no example of Pause"):
        sections()


def test_an_event_that_no_command_gives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Paused(Event):
        """An event that someone adds."""

    monkeypatch.setattr(frames, "EVENTS", (*EVENTS, Paused))
    with pytest.raises(DrawError, match="no commands give Paused"):
        sections()


# --- pages --------------------------------------------------------------------------------------

DRAWN = {"one": "| 1 |", "two": "| 2 |\n|---|"}
BEGIN = "<!-- responsory.draw: one -->"
FRESH = f"a\n\n{BEGIN}\n\n| 1 |\n\n<!-- end -->\nb\n"


def test_a_section_is_replaced_and_the_rest_is_kept() -> None:
    old = f"a\n\n{BEGIN}\nanything\n\n## at all\n<!-- end -->\nb\n"
    assert redrawn(old, DRAWN) == (FRESH, ["one"])
    assert redrawn(FRESH, DRAWN) == (FRESH, [])


def test_line_endings_are_kept() -> None:
    page = f"\ufeffa\r\n{BEGIN}\r\n<!-- end -->\r\n  b\t\r\n\r\n"
    text, stale = redrawn(page, DRAWN)
    assert text == f"\ufeffa\r\n{BEGIN}\r\n\r\n| 1 |\r\n\r\n<!-- end -->\r\n  b\t\r\n\r\n"
    assert stale == ["one"]
    assert redrawn(text, DRAWN) == (text, [])


def test_a_marker_within_a_line_is_text() -> None:
    page = f"write `{BEGIN}` and `<!-- end -->`\n{FRESH}"
    assert redrawn(page, DRAWN) == (page, [])


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("a\n", "no section in it; known: one, two"),
        ("", "no section in it; known: one, two"),
        (f"\n{BEGIN}\n", "line 2: the section `one` has no end"),
        (f"{BEGIN}\n{BEGIN}\n<!-- end -->\n", "line 2: the section of line 1 has not ended"),
        (f"{FRESH}<!-- end -->", "line 9: the end of a section that has not begun"),
        (
            "<!-- responsory.draw: three -->\n<!-- end -->",
            "line 1: <!-- responsory.draw: three --> names no section; known: one, two",
        ),
        (
            "<!-- responsory.draw one -->\n<!-- end -->",
            "line 1: <!-- responsory.draw one --> names no section; known: one, two",
        ),
        (
            "<!-- responsory.draw -->\n<!-- end -->",
            "line 1: <!-- responsory.draw --> names no section; known: one, two",
        ),
    ],
)
def test_a_bad_page_is_refused_with_the_line(page: str, reason: str) -> None:
    with pytest.raises(DrawError) as refused:
        redrawn(page, DRAWN)
    assert str(refused.value) == reason


# --- the command line ---------------------------------------------------------------------------

OLD = "<!-- responsory.draw: states -->\nold\n<!-- end -->\n"


def test_without_files_everything_is_printed() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "responsory.draw"], capture_output=True, check=True, timeout=60
    )
    printed = run.stdout.decode()
    assert redrawn(printed, sections()) == (printed, [])
    assert printed.count("<!-- end -->") == len(sections())


def test_files_are_redrawn_and_checked(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text(OLD)
    other.write_text(redrawn(OLD, sections())[0])
    assert main(["--check", str(page), str(other)]) == 1
    assert page.read_text() == OLD
    out = capsysbinary.readouterr().out.decode()
    assert out == f"{page}: stale: states\n{other}: up to date\n"
    assert main([str(page)]) == 0
    assert page.read_text() == other.read_text()
    assert capsysbinary.readouterr().out.decode() == f"{page}: redrawn: states\n"
    assert main(["--check", str(page)]) == 0


def test_nothing_is_written_where_one_file_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, bad = tmp_path / "page.md", tmp_path / "bad.md"
    page.write_text(OLD)
    cases = [
        (None, "No such file or directory"),
        (b"a", "no section in it; known: diagram, states, table, commands, events"),
        (b"\xff", "not UTF-8"),
    ]
    for content, reason in cases:
        if content is not None:
            bad.write_bytes(content)
        for options in ([], ["--check"]):
            assert main([*options, str(page), str(bad)]) == 2
            out, error = capsys.readouterr()
            assert (out, error) == ("", f"python -m responsory.draw: {bad}: {reason}\n")
            assert page.read_text() == OLD


def test_a_folder_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_a_reader_that_has_gone_is_an_error_without_a_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "responsory.draw"]
    run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writer)
    assert run.returncode == 2
    assert run.stderr == b"python -m responsory.draw: standard output: Broken pipe\n"


def test_check_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--check"])
    assert exit_.value.code == 2
    assert "--check needs a file" in capsys.readouterr().err
