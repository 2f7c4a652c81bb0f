"""``h2load`` of nghttp2, which judges every answer by rules that are not ours."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from faults.conftest import Serve

pytestmark = pytest.mark.skipif(
    shutil.which("h2load") is None, reason="h2load is not installed (Debian: nghttp2-client)"
)
DONE = re.compile(
    r"requests: (\d+) total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored"
)
SHAPES = {
    "one connection": ["-c", "1", "-m", "100"],
    "many connections": ["-c", "50", "-m", "4"],
    "small windows": ["-c", "4", "-m", "25", "-w", "10", "-W", "10"],
}


def h2load(*command: str) -> tuple[int, int]:
    """How many answers were as they must be, and the bytes of their bodies."""
    run = subprocess.run(["h2load", *command], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    found = DONE.search(run.stdout)
    assert found, run.stdout
    total, succeeded, failed, errored = map(int, found.groups())
    assert (succeeded, failed, errored) == (total, 0, 0), run.stdout
    data = re.search(r"\((\d+)\) data$", run.stdout, re.MULTILINE)
    assert data, run.stdout
    return total, int(data[1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_streams_on_h2(serve_ours: Serve, path: str, shape: str, tls: bool) -> None:
    server = serve_ours(tls=tls)
    load = ["-n", "400", *SHAPES[shape], f"{server.url}{path}?n=100"]
    assert h2load(*load) == (400, 400 * 100 * 1024)


@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
def test_streams_on_h1(serve_ours: Serve, path: str) -> None:
    server = serve_ours()
    total, _ = h2load("--h1", "-n", "400", "-c", "50", f"{server.url}{path}?n=100")
    assert total == 400


@pytest.mark.fails_on_stock("an answer without a reason phrase counts as a failure")
def test_answers_on_h1(serve: Serve) -> None:
    h2load("--h1", "-n", "500", "-c", "10", f"{serve().url}/hi")


@pytest.mark.fails_on_stock("request 1000 ends the connection")
def test_many_requests_on_one_connection(serve: Serve) -> None:
    h2load("-n", "5000", "-c", "1", "-m", "32", f"{serve().url}/hi")
