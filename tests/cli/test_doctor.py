"""``antiphon doctor``: what is found in a model's files, and how it is said."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from antiphon.__main__ import main
from known_replies import FILES


def said(*arguments: str) -> str:
    run = CliRunner().invoke(main, ["doctor", *arguments])
    assert run.exit_code == 0, run.output
    return run.output


def test_it_tells_how_the_fixture_model_is_served() -> None:
    lines = dict(line.split(None, 1) for line in said(str(FILES.path)).splitlines())
    assert lines["model"].startswith("tinychat (")
    assert lines["vocabulary"].startswith("768 tokens")
    assert lines["template"] == "system messages, tools, calls, their arguments as object"
    assert (
        lines["reasoning"] == "think: the template writes thought so; thinks where it is asked to"
    )
    assert lines["calls"] == "hermes: the template writes calls so"


def test_the_default_model_is_forced_alone() -> None:
    text = said()
    assert "calls       none: the template shows no tools" in text
    assert "a call can be forced all the same" in text


def test_formats_that_are_asked_for() -> None:
    text = said(str(FILES.path), "--tool-format", "pythonic", "--reasoning-format", "none")
    assert "calls       pythonic: asked for" in text
    assert "reasoning   none: asked for" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere/at/all.gguf"], "nowhere"),
        ([str(FILES.path), "--tool-format", "telepathy"], "telepathy"),
        ([str(FILES.path), "--tool-format", "harmony", "--reasoning-format", "think"], "together"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(arguments: list[str], words: str) -> None:
    run = CliRunner().invoke(main, ["doctor", *arguments])
    assert run.exit_code == 1
    assert words in run.output
    assert "Traceback" not in run.output


def test_no_weights_are_loaded() -> None:
    """Nor torch, which alone takes seconds."""
    code = (
        "import sys\nfrom antiphon.inspection import inspected\n"
        f"list(inspected({str(FILES.path)!r}))\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
