"""Many mutants, a few processes at a time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mutation.isolation import FAILED, PASSED, fork
from mutation.mutants import Mutant


class Verdict(Enum):
    """What the tests said. A mutant that runs out of time is killed too."""

    SURVIVED = "survived"
    FAILED = "failed"
    TIMED_OUT = "timed out"


class BrokenTrialError(Exception):
    """The tests gave no verdict."""


@dataclass(frozen=True, slots=True)
class Trial:
    """``name``: the full name of the module; ``mutant``: None for the module as it is."""

    name: str
    mutant: Mutant | None
    tests: Sequence[Path]


def run(
    trials: Iterable[Trial], *, jobs: int, seconds: int, show: bool = False
) -> Iterator[tuple[Trial, Verdict]]:
    """The verdicts, as they come, of ``jobs`` processes at a time that may use ``seconds`` of
    processor time each. Raises BrokenTrialError where there is no verdict."""
    running: dict[int, Trial] = {}
    waiting = iter(trials)
    try:
        while True:
            while len(running) < jobs and (trial := next(waiting, None)) is not None:
                grow = trial.mutant.grown if trial.mutant else None
                process = fork(trial.name, grow, trial.tests, seconds=seconds, show=show)
                running[process] = trial
            if not running:
                return
            process, status = os.wait()
            if process in running:
                trial = running.pop(process)
                yield trial, verdict(trial, status)
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def verdict(trial: Trial, status: int) -> Verdict:
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Verdict.TIMED_OUT
    if code not in (PASSED, FAILED):
        raise BrokenTrialError(f"no verdict (exit status {code}) on {trial.mutant or trial.name}")
    return Verdict.FAILED if code == FAILED else Verdict.SURVIVED
