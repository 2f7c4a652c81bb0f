"""Versions of stored logs, and the chain that reads old ones.

A version is a pair, the *format* of the rows and the *machine* whose events they tell, and the
versions form one history in which each raises one of the two by one. An *upcast* is the step from
one version to the next: a function from a row to a row. The term is that of event sourcing.

What holds in every version: the header has the same three keys, a row is a list that begins with
its kind and its sequence number, and a row keeps its number, because sequence numbers are public.
So an upcast changes how an event is told, and never how many there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from responsory.errors import LogError, TableError, shown
from responsory.rows import Row, checked_row
from responsory.values import JSON

Upcast: TypeAlias = Callable[[Row], Row]


def unchanged(row: Row) -> Row:
    """The step to a version that only tells more: rows of the one before are rows of it."""
    return row


class Version(NamedTuple):
    """``format``: how an event is written. ``machine``: the events, and the table that orders
    them."""

    format: int
    machine: int

    def __str__(self) -> str:
        return f"format {self.format}, machine {self.machine}"


class UpcastChain:
    """The finished steps of a history: from every version but the last, one."""

    __slots__ = ("_steps", "versions")

    def __init__(self, versions: Sequence[Version], steps: Sequence[Upcast]) -> None:
        self.versions = tuple(versions)
        """All that can be read, the oldest first; the last is the one that is written."""
        self._steps = tuple(zip(versions, steps, strict=False))

    def since(self, version: Version) -> Callable[[JSON], JSON]:
        """What makes a row of that version, one of ``versions``, a row of the last.

        The function raises LogError for what is a row in no version, and where a step fails or
        returns no row with the same sequence number.
        """
        later = self._steps[self.versions.index(version) :]
        steps = [(old, step) for old, step in later if step is not unchanged]

        def upcast(row: JSON) -> JSON:
            for old, step in steps:
                row = _stepped(old, step, checked_row(row))
            return row

        return upcast


class Upcasts:
    """Where steps are declared: ``@upcasts.step(Version(1, 1))`` over the function that takes rows
    of that version to the next, then ``upcasts.chain()``."""

    def __init__(self, *versions: Version) -> None:
        """``versions`` is the history, the oldest first. Raises TableError unless each raises the
        format or the machine by one, and the other not."""
        if not versions:
            raise TableError("a history of no versions")
        for version, after in itertools.pairwise(versions):
            raised = (after.format - version.format, after.machine - version.machine)
            if sorted(raised) != [0, 1]:
                raise TableError(f"{after} does not come next after {version}")
        self._versions = versions
        self._steps: dict[Version, Upcast] = {}

    def step(self, since: Version) -> Callable[[Upcast], Upcast]:
        """Register the decorated function as the step from ``since`` to the version after it. It
        returns a row and leaves the one that it gets as it was.

        Raises TableError where no version comes after ``since``, and for a second step from it.
        """
        if since not in self._versions[:-1]:
            raise TableError(f"a step from {since}, which is no old version")

        def register(upcast: Upcast) -> Upcast:
            if since in self._steps:
                raise TableError(f"declared twice: the step from {since}")
            self._steps[since] = upcast
            return upcast

        return register

    def chain(self) -> UpcastChain:
        """The finished chain. Raises TableError that lists every missing step."""
        old = self._versions[:-1]
        missing = [str(version) for version in old if version not in self._steps]
        if missing:
            raise TableError(f"no step from {'; none from '.join(missing)}")
        return UpcastChain(self._versions, [self._steps[version] for version in old])


def _stepped(since: Version, upcast: Upcast, row: Row) -> Row:
    try:
        result = upcast([*row])
    except Exception as error:
        raise LogError(f"the upcast from {since}: {type(error).__name__}: {error}") from error
    try:
        after = checked_row(result)
    except LogError as error:
        raise LogError(f"the upcast from {since}: {error}") from None
    if after[1] != row[1]:
        raise LogError(f"the upcast from {since}: seq {row[1]} became {shown(after[1])}")
    return after


FIRST = Version(format=1, machine=1)
TOLD = Version(format=1, machine=2)
"""Since it, events tell token ids and running counts, a text that was compacted its cuts, and a
token of log probabilities can have an id, or no log probability."""

UPCASTS = Upcasts(FIRST, TOLD)
UPCASTS.step(FIRST)(unchanged)
CHAIN = UPCASTS.chain()
CURRENT = CHAIN.versions[-1]
