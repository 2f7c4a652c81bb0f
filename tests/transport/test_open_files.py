"""The limit of open files follows the connections, as far as it may."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource")

PROGRAM = """
import logging, resource, sys
from antiphon.transport.open_files import SPARE, make_room
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (300, int(sys.argv[1])))
make_room(int(sys.argv[2]))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("hard", "connections", "soft", "told"),
    [
        (900, 20, 300, ""),
        (900, 400, 656, ""),
        (500, 400, 500, "400 connections need 656 open files and 500 are allowed"),
    ],
)
def test_it_is_raised_as_far_as_it_may_be(
    hard: int, connections: int, soft: int, told: str
) -> None:
    """In a process of its own: nobody can take it back."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(hard), str(connections)],
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert int(done.stdout) == soft
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == bool(told)
