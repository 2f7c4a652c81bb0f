"""One mutant, one process: a fork that imports the mutated module in the place of the real one.

The parent has imported what costs time, pytest and hypothesis, and never the mutated package. The
fork sees one module changed, and whatever it does to itself dies with it.
"""

from __future__ import annotations

import ast
import os
import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import attrs  # noqa: F401  # so that no fork has to
import pytest
from hypothesis import HealthCheck, Phase, settings

MEMORY: Final = 4 << 30
"""Bytes of address space; a mutant that wants more gets a MemoryError. On Linux alone."""

PASSED, FAILED, BROKEN = 0, 1, 3
"""Exit statuses of a fork: all tests passed; one failed or the module could not be imported; no
verdict, because the tests could not be run or the mutant is no Python."""

OPTIONS: Final = (
    "-x", "-q", "-c", os.devnull, "--import-mode=importlib", "--noconftest", "-W", "error",
    "-W", "ignore::pytest.PytestUnknownMarkWarning",
    "-p", "no:cacheprovider", "--assert=plain", "-p", "no:unraisableexception",
    "-p", "no:threadexception", "-p", "no:doctest", "-p", "no:logging", "-p", "no:faulthandler",
)  # fmt: skip

# The same examples in every run; a failure is not made smaller, since nobody reads it.
settings.register_profile(
    "mutation", derandomize=True, database=None, deadline=None, max_examples=30,
    phases=(Phase.explicit, Phase.generate), suppress_health_check=tuple(HealthCheck),
)  # fmt: skip


def fork(
    name: str,
    grow: Callable[[], ast.Module] | None,
    tests: Sequence[Path],
    seconds: int,
    show: bool,
) -> int:
    """Begin to run the test files in turn, up to the first that fails, with the tree that ``grow``
    gives as the module ``name``. Returns the process id; the exit status is one of the three, or
    the process ends by the signal SIGXCPU or SIGKILL: it has used ``seconds`` of processor time.
    """
    process = os.fork()
    if process:
        return process
    status = BROKEN
    try:
        limit(seconds)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # each looked for in every fork
        if not show:
            hush()
        if grow is not None:
            code = compile(grow(), f"<mutated {name}>", "exec", dont_inherit=True)
            sys.meta_path.insert(0, Finder(name, code))
        settings.load_profile("mutation")
        status = verdict(tests)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def hush() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def verdict(tests: Sequence[Path]) -> int:
    for file in tests:
        code = pytest.main([*OPTIONS, f"--rootdir={file.parents[2]}", str(file)])
        if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
            return FAILED
        if code is not pytest.ExitCode.OK:
            return BROKEN
    return PASSED


class Finder(MetaPathFinder):
    """Finds one module, and has it loaded with other code."""

    def __init__(self, name: str, code: CodeType) -> None:
        self._name, self._code = name, code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None and spec.origin is not None:
            spec.loader = Loader(name, spec.origin, self._code)
        return spec


class Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code
