"""The event log: append-only, dense, ended by exactly one terminal event.

Its stored form is a header and one row per event. *Compaction law*: dropping every delta leaves
every body unchanged, because the Done events hold the sums; a compacted log has gaps in ``seq``,
says so in its header, and can no longer be streamed from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, overload

from responsory.compaction import without_deltas
from responsory.errors import LogError
from responsory.events import DELTAS, ENDINGS, Event
from responsory.rows import from_row, to_row

if TYPE_CHECKING:
    from responsory.values import JSON

FORMAT = 1
"""Version of the row format."""
MACHINE = 1
"""Version of the events and of the table that orders them."""


class EventLog:
    """A sequence of events; ``log[i].seq == i`` unless ``log.compacted``."""

    __slots__ = ("_compacted", "_events", "_terminal")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._terminal = False
        self._compacted = False
        self.extend(events)

    def extend(self, events: Iterable[Event]) -> None:
        """Append the events of one command. Raises LogError at a gap or after the end."""
        for event in events:
            if self._terminal:
                raise LogError(f"{type(event).__name__} after the terminal event")
            if event.seq != len(self._events):
                raise LogError(f"seq {event.seq} where {len(self._events)} is due")
            self._append(event)

    def _append(self, event: Event) -> None:
        self._events.append(event)
        self._terminal = type(event) in ENDINGS

    @property
    def terminal(self) -> bool:
        """The log has ended: nothing can follow."""
        return self._terminal

    @property
    def compacted(self) -> bool:
        """The deltas were dropped."""
        return self._compacted

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventLog):
            return NotImplemented
        return self._events == other._events and self._compacted == other._compacted

    __hash__ = None  # type: ignore[assignment]  # a log grows

    def __repr__(self) -> str:
        return f"<EventLog of {len(self)} events{', ended' if self._terminal else ''}>"

    def compact(self) -> EventLog:
        """The same log without its deltas. Raises LogError while it has not ended: the sum of an
        open part is in its deltas alone."""
        if not self._terminal:
            raise LogError("a log that has not ended cannot be compacted")
        compacted = EventLog()
        compacted._compacted = True
        for event in without_deltas(self._events):
            compacted._append(event)
        return compacted

    def rows(self) -> Iterator[JSON]:
        """The header, then one row per event; each is one JSON value."""
        yield {"format": FORMAT, "machine": MACHINE, "compacted": self._compacted}
        for event in self._events:
            yield to_row(event)

    @classmethod
    def from_rows(cls, rows: Iterable[JSON]) -> EventLog:
        """The log of these rows, header first. Raises LogError for what is no row, out of order, or
        not as the header says; whether a machine can have written it is for ``Response.replay``."""
        source = iter(rows)
        compacted = _read_header(next(source, None))
        log = cls()
        if not compacted:
            log.extend(map(from_row, source))
            return log
        log._compacted = True
        for event in map(from_row, source):
            if log._terminal or (log._events and event.seq <= log._events[-1].seq):
                raise LogError(f"seq {event.seq} is out of order")
            if type(event) in DELTAS:
                raise LogError(f"seq {event.seq} is a delta in a compacted log")
            log._append(event)
        if not log._terminal:
            raise LogError("a compacted log that has not ended")
        return log


def _read_header(header: JSON) -> bool:
    """Whether the log is compacted."""
    if not isinstance(header, Mapping) or set(header) != {"format", "machine", "compacted"}:
        raise LogError(f"not the header of a log: {header!r}")
    if header["format"] != FORMAT or header["machine"] != MACHINE:
        raise LogError(f"a log of another version: {header!r}; this is {FORMAT}, {MACHINE}")
    if not isinstance(header["compacted"], bool):
        raise LogError(f"not the header of a log: {header!r}")
    return header["compacted"]
