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
    """``count`` threads, started with the first work, that take work in turn.

    They end when nobody has a reference to it any more.
    """

    def __init__(self, count: int = 2) -> None:
        self._count = count
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def __del__(self) -> None:
        for _ in self._threads:
            self._work.put(None)

    def put(self, work: Callable[[], None]) -> None:
        """Have it done; it must not raise."""
        if len(self._threads) < self._count:
            self._threads.append(_started(self._work))
        self._work.put(work)


def _started(work: SimpleQueue[Callable[[], None] | None]) -> threading.Thread:
    # A daemon: whoever leaves does not wait for a form that nobody will use.
    thread = threading.Thread(target=_run, args=(work,), name="grammar", daemon=True)
    with _stack_size:
        usual = threading.stack_size(STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(usual)
    return thread


def _run(work: SimpleQueue[Callable[[], None] | None]) -> None:
    while (one := work.get()) is not None:
        one()
        del one  # and with it what it knows, until there is more to do
