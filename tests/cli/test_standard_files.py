"""A server whose standard files are closed, full, or not read."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
GUARD_S = 20
COMMAND = f"{sys.executable} -m antiphon serve --engine replay --fixtures {FIXTURES}"


@pytest.mark.parametrize(
    ("redirection", "told"),
    [
        ("> /dev/full", "Standard output takes nothing: No space left on device.\n"),
        (">&-", ""),
        ("<&- >&-", ""),
    ],
)
@pytest.mark.parametrize("loop", ["asyncio", "auto"])
def test_an_output_that_takes_nothing(
    tmp_path: Path, redirection: str, told: str, loop: str
) -> None:
    path = tmp_path / "a.sock"
    line = f"exec {COMMAND} --bind unix:{path} --loop {loop} {redirection}"
    with subprocess.Popen(["sh", "-c", line], stderr=subprocess.PIPE, text=True) as process:
        until_ready(path, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=GUARD_S)
    assert (process.returncode, errors) == (0, told)


def test_an_access_log_without_an_output_is_refused() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{COMMAND} --port 0 --access-log - >&-"],
        stderr=subprocess.PIPE, text=True, timeout=GUARD_S, check=False,
    )  # fmt: skip
    assert done.stderr == "Error: Cannot write the access log -: Bad file descriptor.\n"
    assert done.returncode == 1


def test_an_output_that_nobody_reads_does_not_hold_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    read, write = os.pipe()
    command = [*COMMAND.split(), "--bind", f"unix:{path}", "--access-log", "-"]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE, text=True) as process:
        os.close(write)
        until_ready(path, process)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            for _ in range(20):  # Of 4 KiB each: more than a pipe holds.
                client.get(f"http://any/{'x' * 4096}")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=GUARD_S)
    os.close(read)
    assert (process.returncode, errors) == (0, "")


def until_ready(path: Path, process: subprocess.Popen[str]) -> None:
    turn = threading.Event()
    while not listens(path):
        assert process.poll() is None, process.communicate()
        turn.wait(0.01)
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        while client.get("http://any/ready").status_code != 200:
            turn.wait(0.01)


def listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
