"""What came of it, by kind of question."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.mixed_load.load import CLIENTS, Outcome, Report
from rich.table import Table


def table(report: Report) -> Table:
    """A row for each kind; times are means in seconds."""
    shown = Table(title=f"{CLIENTS} clients at once", title_justify="left")
    shown.add_column("kind")
    for name in ("asked", "ended once", "as alone", "left", "alone s", "at once s"):
        shown.add_column(name, justify="right")
    kinds = dict.fromkeys(one.ask.kind for one in report.outcomes)
    for kind in kinds:
        shown.add_row(kind, *_row([one for one in report.outcomes if one.ask.kind == kind]))
    return shown


def _row(outcomes: list[Outcome]) -> Iterator[str]:
    stayed = [one for one in outcomes if one.ask.leaves_after is None]
    ended = [one for one in stayed if not one.lost]
    yield str(len(outcomes))
    yield str(len(ended)) if stayed else "-"
    yield str(sum(not one.lost and not one.changed for one in stayed)) if stayed else "-"
    yield str(sum(one.mixed.left for one in outcomes))
    for times in ([one.alone.seconds for one in stayed], [one.mixed.seconds for one in outcomes]):
        yield f"{sum(times) / len(times):.2f}" if times else "-"


def summary(report: Report) -> str:
    """The numbers of the whole, and what was left in the server's hands."""
    tokens = sum(one.mixed.tokens for one in report.outcomes)
    rest = report.rest
    return (
        f"{len(report.outcomes)} requests in {report.seconds:.1f} s, {tokens} tokens to those who "
        f"stayed ({tokens / report.seconds:.0f}/s). Afterwards {rest.running} run, {rest.waiting} "
        f"wait; pages: {rest.held} held, {rest.cached} cached, {rest.free} free."
    )
