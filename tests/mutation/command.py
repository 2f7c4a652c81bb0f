"""The command line of the mutation test.

Each mutant differs from the library in one place and is tested in a process of its own. It is
killed when a test fails, when it cannot be imported, or when it runs out of processor time. A table
is printed, and every survivor. Exit status 1: a mutant survived that is not listed as equivalent,
or one that is listed did not survive, or is not there. Exit status 2: the tests gave no verdict.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutation import equivalents
from mutation.mutants import Mutant
from mutation.plan import TESTS
from mutation.report import survivors, table, unproven
from mutation.sources import full_name, mutants_of
from mutation.trials import BrokenTrialError, Trial, Verdict, run

PACKAGE = "responsory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    options = parser().parse_args(arguments)
    modules = options.modules.split(",") if options.modules else list(TESTS)
    listed = equivalents.read() if options.package == PACKAGE else {}
    began = time.monotonic()
    verdicts = []
    try:
        for mutant, verdict in judged(options, modules):
            verdicts.append((mutant, verdict))
            if survivors(verdicts[-1:], listed):
                tell(f"survived: {mutant}")
    except (BrokenTrialError, ModuleNotFoundError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wrong = [] if options.matching else unproven(verdicts, listed, modules)
    for named in wrong:
        tell(f"listed as equivalent, but no survivor: {' | '.join(named)}")
    tell(table(verdicts, listed))
    tell(f"{time.monotonic() - began:.0f} s, {options.jobs} at a time")
    return 1 if wrong or survivors(verdicts, listed) else 0


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()  # a fork takes with it what is not written yet


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    add = parser.add_argument
    add("--tests", type=Path, required=True, help="the folder of the tests")
    add("--modules", help="modules of the package, with commas between; all by default")
    add("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    add("--seconds", type=int, default=20, help="of processor time for a mutant (default: 20)")
    add("--package", default=PACKAGE, help=f"the package that is mutated (default: {PACKAGE})")
    add("--matching", default="", help="only the mutants with this text in their description")
    add("--show", action="store_true", help="show what the tests print")
    return parser


def judged(options: argparse.Namespace, modules: Sequence[str]) -> Iterator[tuple[Mutant, Verdict]]:
    """Each mutant and its verdict, as they come. Raises BrokenTrialError; also where the tests
    fail without a mutant."""
    trials = []
    for module in modules:
        name, tests = full_name(options.package, module), files(options.tests, module)
        trials.append(Trial(name, None, tests))
        trials += [
            Trial(name, mutant, tests)
            for mutant in mutants_of(options.package, module)
            if options.matching in str(mutant)
        ]
    for trial, verdict in run(
        trials, jobs=options.jobs, seconds=options.seconds, show=options.show
    ):
        if trial.mutant is not None:
            yield trial.mutant, verdict
        elif verdict is not Verdict.SURVIVED:
            raise BrokenTrialError(f"the tests of {trial.name} fail without a mutant")


def files(folder: Path, module: str) -> list[Path]:
    """The test files of a module by the plan; every one for a module that is not in it."""
    names, folder = TESTS.get(module), folder.resolve()
    return [folder / name for name in names] if names else sorted(folder.glob("test_*.py"))
