"""Measurements as text: a table for the eye, and the one of ``docs/performance.md``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.serving.cells import Case, Pair, Row, Spread
from benchmarks.serving.measuring import Void
from benchmarks.serving.results import Measurement

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

HEADS = (
    "streams", "API", "protocol", "server", "µs/event", "events/s", "set-up µs", "p50 ms",
    "p99 ms", "head ms", "RSS MB", "n",
)  # fmt: skip


def markdown(measurements: Sequence[Measurement]) -> str:
    """The results of the measurements, a section each."""
    return "\n\n".join(_section(each) for each in measurements)


def plain(made: Measurement) -> str:
    """The same table for a terminal."""
    table = [list(_heads(made)), *(_cells(made, each) for each in made.rows())]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return "\n".join([*lines, *_footnotes(made)])


def write_docs(path: Path, text: str) -> None:
    """Put ``text`` between the marks of the page. Raises ``ValueError`` if it has none."""
    page = path.read_text()
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"{path} has no place for results")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _section(made: Measurement) -> str:
    heads = _heads(made)
    lines = [
        f"### {made.title}",
        "",
        *(f"* {line}" for line in circumstances(made)),
        "",
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(_cells(made, each))} |" for each in made.rows()),
    ]
    notes = list(_footnotes(made))
    return "\n".join([*lines, *([""] if notes else []), *notes])


def circumstances(made: Measurement) -> Iterator[str]:
    """What the figures were taken with, a line each."""
    machine = made.machine
    cores = f"server on core {machine.server_cpu}, engine and client on {machine.client_cpu}"
    yield (
        f"{machine.date}: {machine.processor}, {machine.cores} cores, {machine.memory_gb:g} GB, "
        f"{machine.system}; {cores}."
    )
    yield (
        f"{machine.python} {machine.pgo}, yardstick {machine.yardstick_ns:g} ns; "
        f"{', '.join(machine.packages)}."
    )
    after = f", {_load(made.load_after)} after" if made.load_after else ""
    yield (
        f"Client in {machine.client}; runs of {made.short} and {made.long} tokens a stream; "
        f"load {_load(machine.load)} before{after}."
    )


def _load(averages: Sequence[float]) -> str:
    return " / ".join(f"{average:.2f}" for average in averages)


def _heads(made: Measurement) -> tuple[str, ...]:
    return (*HEADS, *(f"to {name}" for name in _baselines(made)))


def _cells(made: Measurement, each: Row) -> list[str]:
    case = each.case
    return [
        _streams(case),
        case.api,
        _protocol(case),
        case.who,
        _spread(each.us_per_event),
        f"{each.rate:,.0f}{_pace(case)}",
        f"{each.setup_us.median:.0f}",
        *_latencies(each),
        f"{each.head_ms:.1f}",
        f"{each.idle_mb:.0f} → {each.after_mb:.0f} (peak {each.peak_mb:.0f})",
        f"{each.counted}" + (f" ({each.rejected} void)" if each.rejected else ""),
        *(_ratio(made, each, name) for name in _baselines(made)),
    ]


def _streams(case: Case) -> str:
    return f"{case.streams} + {case.stalled} stalled" if case.stalled else str(case.streams)


def _protocol(case: Case) -> str:
    if case.proto == "h2":
        return "h2, 1 connection"
    return f"{case.proto.removesuffix('-single')}, {case.streams} connections"


def _spread(values: Spread) -> str:
    return f"{values.median:.1f} [{values.low:.1f}–{values.high:.1f}]"


def _pace(case: Case) -> str:
    return f" ({case.step_us / 1000:g} ms)" if case.step_us else " (flood)"


def _latencies(each: Row) -> tuple[str, str]:
    # Flooded, a step's time says when it was put into a full pipe.
    if each.p50_ms is None or each.p99_ms is None or not each.case.step_us:
        return "–", "–"
    return f"{each.p50_ms:.2f}", f"{each.p99_ms:.2f}"


def _baselines(made: Measurement) -> list[str]:
    """The servers that others are compared to: the peers."""
    names = {each.case.who for each in made.rows()}
    return sorted(name for name in names if not name.startswith("antiphon"))


def _ratio(made: Measurement, each: Row, name: str) -> str:
    """To the peer at the same API and number of streams, over HTTP/1.1 if it has no other."""
    case = each.case
    found = {
        other.case.proto: other.us_per_event.median
        for other in made.rows()
        if other.case.who == name
        and (other.case.api, other.case.streams) == (case.api, case.streams)
        and other.case.stalled == case.stalled
    }
    base = found.get(case.proto, found.get("h1"))
    return "–" if base is None or name == case.who else f"{each.us_per_event.median / base:.2f}"


def _footnotes(made: Measurement) -> Iterator[str]:
    for case, reason in made.without_figure():
        where = f"{_streams(case)} streams, {case.api}, {_protocol(case)}"
        yield f"No figure for {case.who}, {where}: {reason}."


def progress(repetition: int, result: Pair | Void) -> str:
    """One line on what has just been measured; none on what cannot be."""
    start = f"{repetition + 1}  {result.case!s:<46}"
    if isinstance(result, Void):
        return "" if result.for_good else f"{start} void: {result.reason}"
    told = f"{start} {result.us_per_event:7.2f} µs/event"
    if result.long.seen.p99_us is not None:
        told += f"  p99 {result.long.seen.p99_us / 1e3:6.2f} ms"
    return told + (f"  void: {result.reason}" if result.reason else "")
