"""Threads that compile. Python's own pools cannot give theirs a stack that is deep enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

STACK_BYTES = 256 * 2**20
"""The compiler recurses once or more for each rule that refers to the next: a chain of 3,000 such
rules ends a process whose threads have the usual 8 MiB. It is address space, and no memory until
it is used."""

_stack_size = threading.Lock()


class Workers:
    """``count`` threads, started with the first work, that take work in turn."""

    def __init__(self, count: int = 2) -> None:
        self._count = count
        self._started = 0
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def put(self, work: Callable[[], None]) -> None:
        """Have it done; it must not raise."""
        if self._started < self._count:
            self._started += 1
            self._start()
        self._work.put(work)

    def _start(self) -> None:
        # Daemons: whoever leaves does not wait for a form that nobody will use.
        thread = threading.Thread(target=self._run, name="grammar", daemon=True)
        with _stack_size:
            usual = threading.stack_size(STACK_BYTES)
            try:
                thread.start()
            finally:
                threading.stack_size(usual)

    def _run(self) -> None:
        while True:
            self._work.get()()
