"""From counted runs to a row of a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.serving import results, tables
from benchmarks.serving.cells import Case, Pair, Run, row, why_void
from benchmarks.serving.client import Seen
from benchmarks.serving.machine import Machine
from benchmarks.serving.measuring import Void, turned
from benchmarks.serving.results import Measurement

CASE = Case("antiphon, uvloop", "chat", "h2", 10, 10_000)


def run(wanted: int, cpu_us: float, *, missing: int = 0, foreign: float = 0.0) -> Run:
    seen = Seen(
        events=wanted - missing,
        streams=10,
        bytes=1,
        reads=1,
        seconds=2.0,
        head_p50_us=900.0,
        timed=wanted,
        p50_us=300.0,
        p99_us=2500.0,
        max_us=3000.0,
    )
    return Run(wanted=wanted, seen=seen, cpu_ns=round(cpu_us * 1000), foreign=foreign)


def pair(us_per_event: float, *, case: Case = CASE, reason: str | None = None) -> Pair:
    """A pair whose streams cost 400 µs each before their first event."""
    setup = 400.0 * case.streams
    return Pair(
        case=case,
        repetition=0,
        short=run(100, setup + 100 * us_per_event),
        long=run(500, setup + 500 * us_per_event),
        idle_bytes=70_000_000,
        after_bytes=71_000_000,
        peak_bytes=74_000_000,
        reason=reason,
    )


def test_the_slope_is_free_of_what_the_set_up_costs() -> None:
    assert pair(8.0).us_per_event == pytest.approx(8.0)
    assert pair(8.0).setup_us == pytest.approx(400.0)


def test_a_row_gives_the_median_and_what_it_lies_between_and_leaves_out_what_is_void() -> None:
    pairs = [pair(9.0), pair(7.0), pair(30.0), pair(1.0, reason="disturbed")]
    made = row(CASE, pairs)
    assert made is not None
    figure = made.us_per_event
    assert (figure.median, figure.low, figure.high) == pytest.approx((9.0, 7.0, 30.0))
    assert (made.counted, made.rejected) == (3, 1)
    assert made.rate == pytest.approx(250.0)
    assert row(CASE, [pair(9.0, reason="disturbed")]) is None


def test_a_run_with_a_missing_event_or_a_busy_neighbour_is_void() -> None:
    def void(*runs: Run, merges: bool = False) -> str | None:
        return why_void(runs, merges=merges, foreign_limit=0.25)

    assert void(run(1000, 1.0), run(5000, 1.0)) is None
    assert "999 events" in str(void(run(1000, 1.0, missing=1)))
    assert "1001 events" in str(void(run(1000, 1.0, missing=-1)))
    assert "0.26 cores" in str(void(run(1000, 1.0, foreign=0.26)))
    assert void(run(1000, 1.0, missing=20), merges=True) is None
    assert void(run(1000, 1.0, missing=21), merges=True) is not None
    assert void(run(1000, 1.0, missing=-1), merges=True) is not None


def test_every_repetition_begins_at_another_case() -> None:
    cases = [Case("x", "chat", "h1", streams, 10) for streams in range(4)]
    visits = [turned(cases, repetition) for repetition in range(5)]
    assert [visit[0] for visit in visits] == [*cases, cases[0]]
    assert all(set(visit) == set(cases) for visit in visits)


def measurement() -> Measurement:
    machine = Machine(
        processor="Some Processor",
        cores=2,
        memory_gb=16.0,
        system="Linux 6.1",
        python="CPython 3.11.2",
        pgo="with PGO",
        yardstick_ns=31.5,
        packages=["h2 4.4.1"],
        load=[0.1, 0.2, 0.3],
        date="2030-01-02",
        client="C",
        server_cpu=1,
        client_cpu=0,
    )
    made = Measurement("Title", machine, 64, 320, load_after=[0.4, 0.5, 0.6])
    for result in (
        pair(8.0),
        pair(20.0, case=Case("fastapi", "chat", "h1", 10, 10_000)),
        pair(3.0, case=Case("antiphon, uvloop", "chat", "h1", 10, 10_000), reason="disturbed"),
        Void(Case("fastapi", "chat", "h2", 10, 10_000), "it does not speak h2", for_good=True),
    ):
        made.add(result)
    return made


def test_results_can_be_read_from_the_file_they_were_written_to(tmp_path: Path) -> None:
    made, path = measurement(), tmp_path / "results.jsonl"
    with path.open("w") as file:
        results.begin(file, made)
        for found in (each for pairs in made.pairs.values() for each in pairs):
            results.append(file, found)
        for void in made.voids.values():
            results.append(file, void)
        results.end(file, made)
    assert results.read([path, path]) == [made, made]


def test_a_case_without_a_figure_is_named_with_the_reason_unless_it_cannot_have_one() -> None:
    made = measurement()
    assert [(case.proto, why) for case, why in made.without_figure()] == [("h1", "disturbed")]
    line = "No figure for antiphon, uvloop, 10 streams, chat, h1, 10 connections: disturbed."
    assert line in tables.plain(made)


def test_a_peer_is_compared_over_http1_where_it_has_nothing_else() -> None:
    page = tables.markdown([measurement()])
    (line,) = [line for line in page.splitlines() if "antiphon, uvloop" in line and "|" in line]
    assert "| 8.0 [8.0–8.0] |" in line
    assert line.endswith("| 0.40 |")
    assert "CPython 3.11.2 with PGO, yardstick 31.5 ns" in page
    assert "load 0.10 / 0.20 / 0.30 before, 0.40 / 0.50 / 0.60 after" in page


def test_a_flooded_run_has_no_latency() -> None:
    case = Case("antiphon, uvloop", "chat", "h2", 10, 0)
    made = measurement()
    made.pairs = {case: [pair(2.0, case=case)]}
    (line,) = [line for line in tables.markdown([made]).splitlines() if "flood" in line]
    assert "| – | – |" in line


def test_the_results_of_the_page_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    tables.write_docs(page, "new")
    tables.write_docs(page, "newer")
    assert page.read_text() == f"before\n{tables.BEGIN}\n\nnewer\n\n{tables.END}\nafter\n"
    page.write_text("no place")
    with pytest.raises(ValueError, match="no place"):
        tables.write_docs(page, "new")


def test_the_real_page_has_a_place_for_results() -> None:
    page = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
    assert page.count(tables.BEGIN) == page.count(tables.END) == 1
