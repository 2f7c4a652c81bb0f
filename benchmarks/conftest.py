"""Prints each benchmark's ratio to the baseline of its group, taken in the same run."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def baseline(benchmark: Any) -> None:
    """Marks the benchmark as what the others of its group are compared with."""
    benchmark.extra_info["baseline"] = True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = getattr(config, "_benchmarksession", None)
    groups: dict[str, list[Any]] = {}
    for bench in session.benchmarks if session else ():
        groups.setdefault(bench.group or "", []).append(bench)
    for group, benches in groups.items():
        bases = [bench for bench in benches if bench.extra_info.get("baseline")]
        if len(bases) != 1:
            continue
        terminalreporter.section(f"ratios: {group}", sep="-")
        for bench in benches:
            bar = bench.extra_info.get("at most")
            limit = f"   (at most {bar})" if bar else ""
            ratio = bench["min"] / bases[0]["min"]
            terminalreporter.write_line(f"{bench.name:<48} {ratio:6.3f} x{limit}")
