"""How much memory this process may use: the machine's, or less if its control group has a limit.

Source: the Linux kernel's documentation of cgroup v2 (``memory.max``) and v1
(``memory.limit_in_bytes``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MEMBERSHIP = "proc/self/cgroup"
MOUNTS = {"v2": "sys/fs/cgroup", "v1": "sys/fs/cgroup/memory"}
LIMITS = {"v2": "memory.max", "v1": "memory.limit_in_bytes"}


def host_memory() -> int:
    """Bytes."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(installed, group_limit() or installed)


def group_limit(root: Path = Path("/")) -> int | None:
    """The least limit on the process's control group and on those above it; None: no limit.

    ``root`` is where ``proc`` and ``sys`` are.
    """
    limits = [
        int(text)
        for version, group in _groups(root)
        for folder in (group, *group.parents)
        if (text := _read(root / MOUNTS[version] / folder / LIMITS[version])).isdecimal()
    ]
    return min(limits, default=None)


def _groups(root: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """(version, path below the mount) of the groups that may limit memory.

    In a container the path may be the host's, which is not mounted there; the container's own group
    is then the root of the mount, and that is looked at in any case.
    """
    for line in _read(root / MEMBERSHIP).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield "v2", PurePosixPath(path.lstrip("/"))
        elif "memory" in controllers.split(","):
            yield "v1", PurePosixPath(path.lstrip("/"))


def _read(path: Path) -> str:
    """The text of a file, empty if it cannot be read: not every system has these."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
