"""The event log: append-only, dense, ended by exactly one terminal event.

Its stored form is a header and one row per event. *Compaction law*: dropping every delta leaves
every body unchanged, because the Done events hold the sums; a compacted log has gaps in ``seq``,
says so in its header, and can no longer be streamed from the start.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from responsory.compaction import dropped, without_deltas
from responsory.cuts import CutsSoFar
from responsory.errors import FIRST_ROW, LogError
from responsory.events import DELTAS, ENDINGS, Event, TextDelta
from responsory.header import from_header, to_header, version_of
from responsory.lines import from_line, to_line
from responsory.rows import from_row, named, to_row
from responsory.upcasts import CHAIN, UpcastChain

if TYPE_CHECKING:
    from responsory.values import JSON

T = TypeVar("T")

NOT_ENDED = "a compacted log that has not ended"


class EventLog(Sequence[Event]):
    """A sequence of events; ``log[i].seq == i`` unless ``log.compacted``.

    ``compacted``: written without deltas. They are counted as they come, and dropped, so a long
    text costs the log nothing. Once it has ended, the log equals what ``compact`` would have left.
    Before, the text of the open part is not in it: the log is no ground for a body, a replay or a
    stored form, and ``rows`` refuses it.
    """

    __slots__ = ("_cuts", "_due", "_events")

    def __init__(self, events: Iterable[Event] = (), *, compacted: bool = False) -> None:
        self._events: list[Event] = []
        self._due: int | None = 0
        """The number of the next event; None after the terminal event."""
        self._cuts = CutsSoFar() if compacted else None
        """Of the open part, where deltas are dropped."""
        self.extend([*events])

    def extend(self, events: Sequence[Event]) -> None:
        """Append the events of one command, all or none. Raises LogError at a gap, and after the
        terminal event."""
        try:
            # Nearly every group is one delta.
            (event,) = events
        except ValueError:
            self._extend(events)
            return
        seq = event.seq
        if seq != self._due:
            raise self._refusal(event, self._due)
        cuts = self._cuts
        if cuts is None:
            self._events.append(event)
        elif type(event) is TextDelta:
            cuts.add(event)
        elif type(event) not in DELTAS:
            self._events += without_deltas([event], cuts)
        # Nearly every event is a TextDelta, which is told without a look-up.
        ends = type(event) is not TextDelta and type(event) in ENDINGS
        self._due = None if ends else seq + 1

    def _extend(self, events: Sequence[Event]) -> None:
        due = self._due
        # By index: an iterator, of which the attempt above has taken events, has no length.
        for at in range(len(events)):
            event = events[at]
            if event.seq != due:
                raise self._refusal(event, due)
            due = None if type(event) in ENDINGS else event.seq + 1
        cuts = self._cuts
        self._events += events if cuts is None else without_deltas(events, cuts)
        self._due = due

    @staticmethod
    def _refusal(event: Event, due: int | None) -> LogError:
        if due is None:
            return LogError(f"{named(event)} after the terminal event")
        return LogError(f"{named(event)} where {due} is due")

    @property
    def seq(self) -> int:
        """The number of the next event; once the log has ended, the one that it would have."""
        return self._events[-1].seq + 1 if self._due is None else self._due

    @property
    def terminal(self) -> bool:
        """The log has ended: nothing can follow."""
        return self._due is None

    @property
    def compacted(self) -> bool:
        """The deltas were dropped, or are as they come."""
        return self._cuts is not None

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
        return self._events == other._events and self.compacted == other.compacted

    __hash__ = None  # type: ignore[assignment]  # a log grows

    def __repr__(self) -> str:
        return f"<EventLog of {len(self)} events{', ended' if self.terminal else ''}>"

    def compact(self) -> EventLog:
        """The same log without its deltas. Raises LogError while it has not ended: the sum of an
        open part is in its deltas alone."""
        if not self.terminal:
            raise LogError("a log that has not ended cannot be compacted")
        compacted = EventLog(compacted=True)
        compacted._events = [*without_deltas(self._events)]
        compacted._due = None
        return compacted

    def rows(self) -> Iterator[JSON]:
        """The header, then one row per event; each is one JSON value. Raises LogError for a value
        that could not be read again, and for a compacted log that has not ended."""
        if self.compacted and not self.terminal:
            raise LogError(NOT_ENDED)
        yield to_header(compacted=self.compacted, version=version_of(self._events))
        for row, event in enumerate(self._events, FIRST_ROW):
            try:
                yield to_row(event)
            except LogError as error:
                error.row = row
                raise

    def lines(self) -> Iterator[bytes]:
        """The rows as JSON Lines in UTF-8, line ends included. Raises as ``rows`` does."""
        return map(to_line, self.rows())

    @classmethod
    def from_rows(cls, rows: Iterable[JSON], upcasts: UpcastChain = CHAIN) -> EventLog:
        """The log of these rows, header first, of any version that ``upcasts`` reads.

        Raises LogError at the first row that is none, is out of order, or is not as the header
        says. Whether a machine can have written the whole is for ``Response.replay``.
        """
        return cls._read(rows, _same, upcasts)

    @classmethod
    def from_lines(cls, lines: Iterable[str | bytes], upcasts: UpcastChain = CHAIN) -> EventLog:
        """The log of JSON Lines, such as those of a file opened for reading bytes. Raises as
        ``from_rows`` does, and for a line that is not JSON; TypeError for one text instead of its
        lines."""
        if isinstance(lines, str | bytes | bytearray):
            raise TypeError(f"lines are due, one by one, not one {type(lines).__name__}")
        return cls._read(lines, from_line, upcasts)

    @classmethod
    def _read(
        cls, source: Iterable[T], parse: Callable[[T], JSON], upcasts: UpcastChain
    ) -> EventLog:
        row, rest = 1, iter(source)
        try:
            header = [parse(first) for first in itertools.islice(rest, 1)]
            if not header:
                raise LogError("no header of a log")
            version, compacted = from_header(header[0], upcasts.versions)
            log = cls(compacted=compacted)
            upcast = upcasts.since(version)
            for value in rest:
                row += 1
                log._take(from_row(upcast(parse(value))))
            if compacted and not log.terminal:
                row += 1
                raise LogError(NOT_ENDED)
        except LogError as error:
            error.row = row
            raise
        except UnicodeDecodeError as error:  # of a file opened as text, which is read ahead
            reason = f"not UTF-8: {error.reason}; a file opened as bytes tells the row"
            raise LogError(reason) from None
        return log

    def _take(self, event: Event) -> None:
        """Append an event that was read."""
        if self.compacted and self._due is not None:
            # The number that is due after dropped deltas is that of the event itself.
            self._due += dropped(event, self._due)
        self.extend([event])


def _same(row: JSON) -> JSON:
    return row
