"""Processes that are pinned to a processor, watched while they start and ended for sure."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.serving.accounts import tree

ROOT = Path(__file__).parents[2]
"""Where processes start, so that they find this package."""
START_S = 60.0
END_S = 5.0


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """A process pinned to ``cpu``; what it prints is kept for the case that it fails."""

    def __init__(
        self,
        command: Sequence[str],
        cpu: int,
        *,
        pass_fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self._popen = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            pass_fds=pass_fds,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
            preexec_fn=partial(os.sched_setaffinity, 0, {cpu}),
        )
        self.pid = self._popen.pid

    def wait_for_answer(self, port: int, path: str, within_s: float = START_S) -> None:
        """Return once a GET of ``path`` is answered with 200. Raises ``RuntimeError``."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if self._popen.poll() is not None:
                raise RuntimeError(f"it ended at once: {self.last_words()}")
            asking = HTTPConnection("127.0.0.1", port, timeout=1)
            try:
                asking.request("GET", path)
                if asking.getresponse().status == 200:
                    return
            except (OSError, HTTPException):
                pass
            finally:
                asking.close()
            time.sleep(0.02)
        raise RuntimeError(f"no answer after {within_s:g} s: {self.last_words()}")

    def last_words(self) -> str:
        """The last line that it printed."""
        self._printed.seek(0)
        lines = self._printed.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    def stop(self) -> None:
        """Ask its tree to end, then make it; idempotent."""
        if self._printed.closed:
            return
        pids = tree(self.pid)
        self._popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_S)
        for pid in pids:  # those that outlive their parent too
            if pid != self.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._popen.kill()
        self._popen.wait()
        self._printed.close()
