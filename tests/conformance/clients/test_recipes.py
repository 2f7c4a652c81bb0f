"""The recipes of ``docs/clients.md``, run as they stand, against servers on other ports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conformance.conftest import Server
from conformance.npm import packages

MODULES = packages()
ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ADDRESS = "http://127.0.0.1:8000"
SECTIONS = dict(section.split("\n", 1) for section in DOCUMENT.split("\n## ")[1:])
RECIPES = {title: BLOCK.findall(section) for title, section in SECTIONS.items()}
CODEX = "Codex CLI"
CLIENTS = [title for title in RECIPES if title != CODEX]


def printed(command: list[str], folder: Path) -> str:
    """Its standard output; ``node`` and what npm installed are on the path."""
    places = [str(MODULES / ".bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    run = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def moved(code: str, server: Server) -> str:
    assert code.count(ADDRESS) == 1
    return code.replace(ADDRESS, server.url)


@pytest.mark.parametrize("title", CLIENTS)
def test_a_client(model_server: Server, tmp_path: Path, title: str) -> None:
    (_, _install), (language, code), (kind, due) = RECIPES[title]
    assert kind == "text"
    name = {"python": "recipe.py", "js": "recipe.mjs"}[language]
    (tmp_path / name).write_text(moved(code, model_server), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(MODULES)
    program = sys.executable if language == "python" else "node"
    assert printed([program, name], tmp_path) == due


def test_codex(scripted_server: Server, tmp_path: Path) -> None:
    (_, serve), (_, _install), (_, code), (kind, due) = RECIPES[CODEX]
    assert kind == "text"
    assert all((ROOT / word).exists() for word in serve.split() if word.startswith("tests/"))
    assert printed(["sh", "-ec", moved(code, scripted_server)], tmp_path) == due


def test_what_a_recipe_installs_is_what_is_tested() -> None:
    pinned = json.loads((ROOT / "tests/conformance/node/package.json").read_text())["dependencies"]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tested = {
        name.split("==")[0] for name in groups["dependency-groups"]["conformance"] if "==" in name
    }
    for title, blocks in RECIPES.items():
        install = blocks[title == CODEX][1]
        manager, _, *names = install.split()
        assert names
        assert set(names) <= (tested if manager == "pip" else pinned.keys()), title
