"""The limit of a container is found, wherever the kernel shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from antiphon.engines.torch.host_memory import group_limit, host_memory

NO_LIMIT_V1 = str(2**63 - 4096)
CASES: Mapping[str, tuple[Mapping[str, str], int | None]] = {
    "no such system": ({}, None),
    "v2 in its own namespace": (
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "4096"},
        4096,
    ),
    "v2 without a limit": (
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"},
        None,
    ),
    "v2 below a limit": (
        {
            "proc/self/cgroup": "0::/user.slice/a.scope",
            "sys/fs/cgroup/user.slice/memory.max": "1000",
            "sys/fs/cgroup/user.slice/a.scope/memory.max": "max",
        },
        1000,
    ),
    "the least of several": (
        {
            "proc/self/cgroup": "0::/a/b",
            "sys/fs/cgroup/a/memory.max": "1000",
            "sys/fs/cgroup/a/b/memory.max": "500",
        },
        500,
    ),
    "v1 with the host's path in a container": (
        {
            "proc/self/cgroup": "9:memory:/docker/0123\n8:cpu,cpuacct:/docker/0123",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "2048",
        },
        2048,
    ),
    "v1 beside v2": (
        {
            "proc/self/cgroup": "5:freezer:/x\n3:hugetlb,memory:/x\n0::/x",
            "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "64",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
        },
        64,
    ),
    "another controller's files": (
        {"proc/self/cgroup": "5:cpu:/x", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "64"},
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_group_limit(tmp_path: Path, case: str) -> None:
    files, limit = CASES[case]
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    assert group_limit(tmp_path) == limit


def test_the_machine_bounds_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "antiphon.engines.torch.host_memory.group_limit"
    monkeypatch.setattr(module, lambda: None)
    installed = host_memory()
    assert installed > 0
    monkeypatch.setattr(module, lambda: installed - 1)
    assert host_memory() == installed - 1
    monkeypatch.setattr(module, lambda: int(NO_LIMIT_V1))
    assert host_memory() == installed
