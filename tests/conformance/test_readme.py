"""The README's examples, run as they stand, against a server on another port."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.conftest import Server
from conformance.test_first_light import ANSWER

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", README, re.DOTALL)
CURLS = [code for language, code in BLOCKS if code.startswith("curl")]
SNIPPETS = [code for language, code in BLOCKS if language == "python"]


def run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def moved(code: str, server: Server) -> str:
    assert "http://127.0.0.1:8000" in code
    return code.replace("http://127.0.0.1:8000", server.url)


def test_the_readme_shows_its_commands() -> None:
    assert "python3 -m pip install nox && nox -s serve" in README
    assert "nox -s tests" in README
    assert (len(CURLS), len(SNIPPETS)) == (2, 1)


@pytest.mark.parametrize("code", CURLS, ids=["chat", "responses"])
def test_curl(model_server: Server, code: str) -> None:
    output = run(["sh", "-c", moved(code, model_server)])
    assert output.endswith("data: [DONE]\n\n")
    assert all(word in output for word in ANSWER.rstrip(".").split())


@pytest.mark.parametrize("code", SNIPPETS)
def test_python(model_server: Server, code: str) -> None:
    assert run([sys.executable, "-c", moved(code, model_server)]) == ANSWER
