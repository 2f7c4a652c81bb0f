"""The load client: compiled from ``client.c`` where there is a C compiler, else in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import attrs
from benchmarks.peers import Api, Proto
from benchmarks.serving.processes import ROOT
from benchmarks.serving.request_bytes import RequestBytes

SOURCE = Path(__file__).with_name("client.c")

MARKERS: dict[Api, str] = {
    "chat": '"content":" ',
    "completions": '"text":" ',
    "responses": '"delta":" ',
}
"""What stands before the word of a token in an event, so that the word tells the step."""


@attrs.frozen
class Seen:
    """What the client saw in one run. Every stream ended as it should, or there would be none."""

    events: int
    streams: int
    bytes: int
    reads: int
    seconds: float
    """From the first event to the last."""
    head_p50_us: float
    """From a request to the first byte of its answer, in a burst of all streams."""
    timed: int = 0
    """Events whose step was known."""
    p50_us: float | None = None
    """From the step leaving the engine to the event being read."""
    p99_us: float | None = None
    max_us: float | None = None


class Failed(Exception):
    """The run counts for nothing; the message is one line."""


class Client:
    """The client of one measurement, pinned to ``cpu``."""

    def __init__(self, folder: Path, cpu: int, times: Path, *, compiled: bool = True) -> None:
        self._folder = folder
        self._cpu = cpu
        self._times = times
        self._command = (compiled and _compiled(folder)) or _interpreted()
        self.kind = "C" if self._command[0] != sys.executable else "Python"

    def run(
        self,
        port: int,
        proto: Proto,
        streams: int,
        request: RequestBytes,
        api: Api,
        limit_s: float,
        *,
        stalled: int = 0,
    ) -> Seen:
        """Open so many streams at once and read them all to their end. Raises ``Failed``.

        ``stalled`` further ones are asked for and never read.
        """
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            head, body = Path(name, "head"), Path(name, "body")
            head.write_bytes(request.head)
            body.write_bytes(request.body)
            arguments = [
                str(port), proto, str(streams), str(stalled),
                str(head), str(body), str(self._times), MARKERS[api], str(limit_s),
            ]  # fmt: skip
            done = subprocess.run(
                [*self._command, *arguments],
                capture_output=True,
                text=True,
                check=False,
                cwd=ROOT,
                timeout=limit_s + 30,
                preexec_fn=partial(os.sched_setaffinity, 0, {self._cpu}),
            )
        if done.returncode:
            raise Failed(" ".join(done.stderr.split())[-300:] or f"status {done.returncode}")
        return Seen(**json.loads(done.stdout))


def _compiled(folder: Path) -> list[str]:
    """The command of the client in C; empty without a compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not compiler:
        return []
    program = folder / "client"
    subprocess.run([compiler, "-O2", "-o", str(program), str(SOURCE)], check=True)
    return [str(program)]


def _interpreted() -> list[str]:
    return [sys.executable, "-m", "benchmarks.serving.python_client"]
