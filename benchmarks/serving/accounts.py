"""Who used how much processor and memory, by Linux's own accounts.

CPU of a process is read from its CPU clock: nanoseconds on a processor of all its threads, those
that have ended included, which a sum over ``/proc/PID/task/*/schedstat`` would lose.
"""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
_SCHED_CLOCK = 2
"""``CPUCLOCK_SCHED`` of Linux: the clock that counts time on a processor exactly."""


def tree(pid: int) -> list[int]:
    """The process and its descendants; those that have gone are left out."""
    found = [pid]
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in (PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def cpu_ns(pid: int) -> int:
    """Nanoseconds that the tree of ``pid`` has been on a processor, in user and system mode."""
    total = 0
    for each in tree(pid):
        with suppress(OSError):  # it may have gone
            # clock_getcpuclockid(3) makes the id of another process' clock like this.
            total += time.clock_gettime_ns((~each << 3) | _SCHED_CLOCK)
    return total


def rss_bytes(pid: int) -> int:
    """Bytes of memory in use by the tree of ``pid``; what its processes share counts for each."""
    return _status(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    """The most that each process of the tree ever used, added up."""
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    total = 0
    for each in tree(pid):
        try:
            lines = (PROC / str(each) / "status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    return total


def busy_s() -> float:
    """Seconds that the processors of the machine together have been busy, or were taken from it.

    A virtual machine's host takes time away ("steal"); nobody of ours can have used that.
    """
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, (PROC / "stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_s() -> float:
    """CPU seconds of the children of this process that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
