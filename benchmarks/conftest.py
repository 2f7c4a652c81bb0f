"""Prints the ratios that benchmarks took beside their baselines."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = getattr(config, "_benchmarksession", None)
    groups: dict[str, list[Any]] = {}
    for bench in session.benchmarks if session else ():
        if "ratio" in bench.extra_info:
            groups.setdefault(bench.group or "", []).append(bench)
    for group, benches in groups.items():
        terminalreporter.section(f"ratios: {group}", sep="-")
        for bench in benches:
            ratio, bar = bench.extra_info["ratio"], bench.extra_info["at most"]
            verdict = ""
            if bar is not None:
                verdict = f"   at most {bar}: {'held' if ratio <= bar else 'NOT HELD'}"
            if "us" in bench.extra_info:
                took, bar = bench.extra_info["us"], bench.extra_info["us at most"]
                verdict += (
                    f"   {took:.{0 if took >= 10 else 2}f} µs, at most {bar}: "
                    f"{'held' if took <= bar else 'NOT HELD'}"
                )
            terminalreporter.write_line(f"{bench.name:<52} {ratio:6.3f} x{verdict}")
