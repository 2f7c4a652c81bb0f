"""The process of an engine."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

REAP_S = 10.0
"""How long the end of a killed process is waited for. One that hangs in a driver takes longer."""


class EngineProcess:
    """A child that shares nothing with us but one socket, of which it is given the number.

    It is in a process group of its own, so that the terminal's interrupt is for the server alone,
    which lets open answers end. What it prints goes to our standard error.
    """

    def __init__(self, argv: Sequence[str], theirs: socket.socket) -> None:
        """Spawn it. Raises ``OSError``."""
        number = theirs.fileno()
        self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
            [*argv, str(number)],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=2,
            process_group=0,
        )
        self.pid = self._popen.pid
        self.status: int | None = None
        """Exit status, or less than 0: minus the signal that ended it."""
        self._loop = asyncio.get_running_loop()
        self._reaped = asyncio.Event()
        # A daemon: a process that cannot die must not hold ours back.
        threading.Thread(target=self._reap, name=f"reaper-{self.pid}", daemon=True).start()

    def worked(self) -> int | None:
        """Processor time that it and the children it has waited for have used, in ticks of the
        system; None where that is not told."""
        try:
            told = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return None
        # Behind the name, which may hold anything: see proc(5), from field 3 on.
        return sum(map(int, told.rpartition(b")")[2].split()[11:15]))

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._popen.kill()

    async def reaped(self) -> bool:
        """Wait until it has gone; not for ever. Whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REAP_S):
                await self._reaped.wait()
        return self._reaped.is_set()

    def story(self) -> str:
        """How it ended, in words."""
        status = self.status
        if status is None:
            return "is still there"
        if status >= 0:
            return f"left with status {status}"
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
        return f"was ended by signal {-status}"

    def _reap(self) -> None:
        self.status = self._popen.wait()
        with suppress(RuntimeError):  # the event loop has closed
            self._loop.call_soon_threadsafe(self._reaped.set)
