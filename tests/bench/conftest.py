"""Which clients there are on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from benchmarks.serving.client import Client
from benchmarks.serving.step_times import StepTimes


@pytest.fixture(scope="session")
def times(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return StepTimes.make(tmp_path_factory.mktemp("steps") / "times")


@pytest.fixture(scope="session", params=["C", "Python"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, times: Path
) -> Client:
    if request.param == "C" and not (os.environ.get("CC") or shutil.which("cc")):
        pytest.skip("there is no C compiler")
    made = Client(
        tmp_path_factory.mktemp("client"),
        min(os.sched_getaffinity(0)),
        times,
        compiled=request.param == "C",
    )
    assert made.kind == request.param
    return made
