"""What a figure depends on besides the code: machine, interpreter, packages, load."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import attrs

TURNS = 200_000
PACKAGES = (
    "antiphon",
    "hypercorn",
    "quart",
    "h2",
    "h11",
    "uvloop",
    "uvicorn",
    "httptools",
    "fastapi",
)


@attrs.frozen
class Machine:
    """Where and when figures were taken. Only those of one machine and interpreter compare."""

    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    pgo: str
    """Whether the interpreter was built with profile-guided optimisation, as far as it tells."""
    yardstick_ns: float
    """A turn of a fixed loop in pure Python on the server's core: median of nine."""
    packages: Sequence[str]
    load: Sequence[float]
    """Averages of 1, 5 and 15 minutes before the start."""
    date: str
    client: str
    """The language of the load client."""
    server_cpu: int
    client_cpu: int


def machine(server_cpu: int, client_cpu: int, client: str) -> Machine:
    """This machine now."""
    measured = subprocess.run(
        [sys.executable, "-m", "benchmarks.serving.machine"],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, {server_cpu}),
    )
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 0,
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        system=f"{platform.system()} {platform.release().partition('-')[0]}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        pgo=_pgo(),
        yardstick_ns=json.loads(measured.stdout),
        packages=[f"{name} {found}" for name in PACKAGES if (found := _version(name))],
        load=[round(average, 2) for average in os.getloadavg()],
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        client=client,
        server_cpu=server_cpu,
        client_cpu=client_cpu,
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _pgo() -> str:
    if "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return "with PGO"
    if "-fprofile-use" in str(sysconfig.get_config_var("PY_CORE_CFLAGS") or ""):
        return "with PGO"
    return "without PGO"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def yardstick_ns() -> float:
    """Nanoseconds of a turn of the loop."""
    return statistics.median(_turns() for _ in range(9)) / TURNS


def _turns() -> int:
    table: dict[int, int] = {}
    total = 0
    began = time.thread_time_ns()
    for turn in range(TURNS):
        table[turn & 255] = total
        total += len(table) & turn
    return time.thread_time_ns() - began


if __name__ == "__main__":
    print(json.dumps(round(yardstick_ns(), 1)))
