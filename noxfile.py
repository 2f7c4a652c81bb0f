"""Every task of the project, each in its own virtual environment made by pip.

``serve`` and ``tests`` are the README's two commands; ``lint`` and ``types`` are the gates beside
them. Environments are reused between runs: the install step is then a quick look.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
DECIDE_INSTALL = ("pyproject.toml", "statemachines/pyproject.toml", "constraints.txt")
CODE = ("src", "statemachines", "tests", "benchmarks", "noxfile.py")


def install(session: nox.Session, *groups: str) -> None:
    """Both distributions, editable, with the named dependency groups; torch by constraint.

    Left out when nothing that decides it has changed since the last time: the code itself is
    linked, and pip needs ten seconds to find out that there is nothing to do.
    """
    deciding = b"".join(Path(path).read_bytes() for path in DECIDE_INSTALL)
    digest = hashlib.sha256(deciding + repr(groups).encode()).hexdigest()
    stamp = Path(session.virtualenv.location) / "installed.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        session.log("The environment is up to date.")
        return
    session.install(
        "-c", "constraints.txt", "-e", "./statemachines", "-e", ".",
        *nox.project.dependency_groups(PYPROJECT, *groups),
    )  # fmt: skip
    stamp.write_text(digest)


@nox.session
def serve(session: nox.Session) -> None:
    """Serve a model; without arguments the default one. ``nox -s serve -- --help`` for more."""
    install(session)
    # Longer than the server takes to bring its open streams to an end.
    session.run("antiphon", "serve", *session.posargs, interrupt_timeout=60, terminate_timeout=10)


@nox.session
def tests(session: nox.Session) -> None:
    """The whole test suite: real sockets, real SDKs, the real default model."""
    install(session, "tests")
    session.run("antiphon", "fetch", "--quiet")
    session.run("pytest", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks, printed as ratios to a baseline taken in the same run."""
    install(session, "tests")
    session.run("python", "benchmarks/first_light.py", env={"OMP_NUM_THREADS": "1"})
    session.run(
        "pytest", "benchmarks", "--benchmark-only", *session.posargs, env={"OMP_NUM_THREADS": "1"}
    )


@nox.session
def lint(session: nox.Session) -> None:
    """ruff: rules and format."""
    session.install(*nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "check", *CODE)
    session.run("ruff", "format", *(() if os.environ.get("FIX") else ("--check",)), *CODE)


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict over both packages and the tests."""
    install(session, "types")
    session.run(
        "mypy", "--strict", "src/antiphon", "statemachines/responsory", "tests", "benchmarks"
    )
