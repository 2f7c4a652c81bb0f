"""From counted runs to a figure: the slope of two lengths, and what makes a pair of runs void."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from benchmarks.peers import Api, Proto
from benchmarks.serving.client import Seen

FOREIGN_LIMIT = 0.25
"""Cores that other processes may use while a run is on."""
MERGED_LIMIT = 0.02
"""Part of a peer's events that may be missing, since several tokens in one event are lawful."""


@attrs.frozen
class Case:
    """What is measured: one row of a table."""

    who: str
    api: Api
    proto: Proto
    streams: int
    step_us: int
    """Between two tokens of a stream; 0 is as fast as the server takes them."""
    stalled: int = 0
    """Further streams, which nobody reads."""

    def __str__(self) -> str:
        stalled = f"+{self.stalled} stalled" if self.stalled else ""
        return f"{self.who} {self.api} {self.proto} {self.streams}{stalled}"


@attrs.frozen
class Run:
    """One run of the client, and what it cost."""

    wanted: int
    """Events that the streams must have had."""
    seen: Seen
    cpu_ns: int
    """Of the front end."""
    foreign: float
    """Cores used by processes that have no part in the measurement."""


@attrs.frozen
class Pair:
    """A short and a long run over the same set-up: one repetition of a case."""

    case: Case
    repetition: int
    short: Run
    long: Run
    idle_bytes: int
    """Memory of the front end before the runs, …"""
    after_bytes: int
    """… after them, …"""
    peak_bytes: int
    """… and the most of it between."""
    reason: str | None = None
    """Why the pair is void; None if it counts."""

    @property
    def us_per_event(self) -> float:
        """CPU microseconds of one more event that came."""
        more = self._events(self.long) - self._events(self.short)
        return (self.long.cpu_ns - self.short.cpu_ns) / more / 1e3

    @property
    def setup_us(self) -> float:
        """CPU microseconds of a stream that are no events: connection, request, end."""
        rest = self.short.cpu_ns / 1e3 - self.us_per_event * self._events(self.short)
        return rest / self.case.streams

    def _events(self, run: Run) -> int:
        # One that is void may have none that came, and its figure is only looked at.
        return run.seen.events if self.reason is None else run.wanted


def why_void(runs: Iterable[Run], *, merges: bool, foreign_limit: float) -> str | None:
    """The first thing that is wrong with the runs; None if nothing is.

    ``merges``: the server may put several tokens into one event, a few times.
    """
    for run in runs:
        missing = run.wanted - run.seen.events
        if missing < 0 or missing > (MERGED_LIMIT * run.wanted if merges else 0):
            return f"{run.seen.events} events instead of {run.wanted}"
        if run.foreign > foreign_limit:
            return f"other processes used {run.foreign:.2f} cores"
    return None


@attrs.frozen
class Spread:
    """A median and what it lies between. There is no other way to get a figure out of repetitions,
    least of all the lowest one."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises ``statistics.StatisticsError`` for none."""
        return cls(statistics.median(values), min(values), max(values))


@attrs.frozen
class Row:
    """All repetitions of a case that count."""

    case: Case
    counted: int
    rejected: int
    us_per_event: Spread
    setup_us: Spread
    p50_ms: float | None
    p99_ms: float | None
    head_ms: float
    rate: float
    """Events a second, all streams together."""
    idle_mb: float
    after_mb: float
    peak_mb: float


def row(case: Case, pairs: Sequence[Pair]) -> Row | None:
    """The row of a case; None while no pair counts. Latencies and rate are those of long runs."""
    good = [pair for pair in pairs if pair.reason is None]
    if not good:
        return None
    long = [pair.long.seen for pair in good]
    return Row(
        case=case,
        counted=len(good),
        rejected=len(pairs) - len(good),
        us_per_event=Spread.of([pair.us_per_event for pair in good]),
        setup_us=Spread.of([pair.setup_us for pair in good]),
        p50_ms=_ms([seen.p50_us for seen in long]),
        p99_ms=_ms([seen.p99_us for seen in long]),
        head_ms=statistics.median(seen.head_p50_us for seen in long) / 1e3,
        rate=statistics.median(seen.events / seen.seconds for seen in long if seen.seconds),
        idle_mb=statistics.median(pair.idle_bytes for pair in good) / 1e6,
        after_mb=statistics.median(pair.after_bytes for pair in good) / 1e6,
        peak_mb=statistics.median(pair.peak_bytes for pair in good) / 1e6,
    )


def _ms(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) / 1e3 if known else None


def pair_to_json(pair: Pair) -> dict[str, Any]:
    """A pair as a JSON object, the figure itself with it."""
    return {**attrs.asdict(pair), "us_per_event": pair.us_per_event, "setup_us": pair.setup_us}


def pair_from_json(data: Mapping[str, Any]) -> Pair:
    """The reverse of ``pair_to_json``."""

    def run(part: Mapping[str, Any]) -> Run:
        return Run(**{**part, "seen": Seen(**part["seen"])})

    fields = {name: data[name] for name in attrs.fields_dict(Pair)}
    parts = {"case": Case(**data["case"]), "short": run(data["short"]), "long": run(data["long"])}
    return Pair(**{**fields, **parts})
