"""Messages from an engine to its server: the engine never waits until one is read."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import deque

BACKLOG_WARNING = 1_000
"""Unsent messages from which on the server is reported as too slow."""

log = logging.getLogger(__name__)


class Sender:
    """Writes at once while the socket has room; beyond that a thread of its own writes.

    ``send`` may be called from any thread. When nobody is left to read, the process ends.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._unsent: deque[memoryview] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._reported = False

    def send(self, message: bytes) -> None:
        """Send after all that was sent before."""
        with self._changed:
            rest = memoryview(message)
            if not self._unsent:
                try:
                    rest = rest[self._socket.send(rest, socket.MSG_DONTWAIT) :]
                except (BlockingIOError, InterruptedError):
                    pass
                except OSError:
                    os._exit(1)
            if not rest:
                return
            self._unsent.append(rest)
            if self._thread is None:
                self._thread = threading.Thread(target=self._drain, name="frames", daemon=True)
                self._thread.start()
            if len(self._unsent) > BACKLOG_WARNING and not self._reported:
                self._reported = True
                log.warning("%d frames wait for the server", len(self._unsent))
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unsent)

    def _drain(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unsent)
                first = self._unsent[0]
            try:
                self._socket.sendall(first)
            except OSError:
                os._exit(1)
            with self._changed:
                # Only now: meanwhile nothing may overtake it.
                self._unsent.popleft()
                self._changed.notify_all()
