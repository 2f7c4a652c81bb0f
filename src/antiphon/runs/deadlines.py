"""Which runs have been open for too long. No clock of its own: the time is an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

R = TypeVar("R")

SECOND_NS = 1_000_000_000


class Deadlines(Generic[R]):
    """One time limit for all, so that the first to begin is always the first to be late."""

    def __init__(self, limit_ns: int) -> None:
        """``limit_ns`` is what each may take; 0 is no limit."""
        self._limit_ns = limit_ns
        self._due: dict[int, tuple[int, R]] = {}
        """In the order of their times, by the identity of the run."""
        self._begun = anyio.Event()

    @property
    def next_ns(self) -> int | None:
        """When the next one is late; None when none is watched."""
        return next(iter(self._due.values()))[0] if self._due else None

    def start(self, run: R, now_ns: int) -> None:
        """Begin to watch ``run``, or begin anew."""
        if self._limit_ns:
            self._due.pop(id(run), None)
            self._due[id(run)] = (now_ns + self._limit_ns, run)
            self._begun.set()

    def forget(self, run: R) -> None:
        """Its time is of no matter any more. Idempotent."""
        self._due.pop(id(run), None)

    def late(self, now_ns: int) -> list[R]:
        """The runs whose time is over; they are forgotten."""
        late = []
        for due_ns, run in self._due.values():
            if due_ns > now_ns:
                break
            late.append(run)
        for run in late:
            self.forget(run)
        return late

    async def keep(self, clock_ns: Callable[[], int], expire: Callable[[], None]) -> None:
        """Call ``expire`` whenever somebody's time is over, until cancelled."""
        while True:
            self._begun = anyio.Event()
            if (due_ns := self.next_ns) is None:
                await self._begun.wait()
            else:
                await anyio.sleep(max(0, due_ns - clock_ns()) / SECOND_NS)
                expire()
