"""Which runs have been open for too long. No clock: every method is told the time."""

from __future__ import annotations

from typing import Generic, TypeVar

R = TypeVar("R")


class Deadlines(Generic[R]):
    """One time limit for all, so that the first to begin is always the first to be late."""

    def __init__(self, limit_ns: int) -> None:
        """``limit_ns`` is what each may take; 0 is no limit."""
        self._limit_ns = limit_ns
        self._due: dict[int, tuple[int, R]] = {}
        """In the order of their times, by the identity of the run."""

    @property
    def next_ns(self) -> int | None:
        """When the next one is late; None when none is watched."""
        return next(iter(self._due.values()))[0] if self._due else None

    def start(self, run: R, now_ns: int) -> None:
        """Begin to watch ``run``, or begin anew."""
        if self._limit_ns:
            self._due.pop(id(run), None)
            self._due[id(run)] = (now_ns + self._limit_ns, run)

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
