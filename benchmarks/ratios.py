"""A benchmark beside its baseline, taken in turns, so that what disturbs one disturbs the other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture


def beside(
    benchmark: BenchmarkFixture,
    work: Callable[..., object],
    baseline: Callable[[], object],
    *,
    setup: Callable[[], tuple[Any, ...]] = tuple,
    rounds: int = 20,
    bar: float | None = None,
) -> None:
    """Benchmark ``work``, and note the median of its time over the baseline's, round by round.

    ``setup`` gives the arguments of a round of work. ``bar``: what the ratio should not exceed.
    """
    ratios = []
    for _ in range(rounds):
        prepared = setup()
        begin = time.perf_counter()
        baseline()
        middle = time.perf_counter()
        work(*prepared)
        ratios.append((time.perf_counter() - middle) / (middle - begin))
    benchmark.extra_info["ratio"] = statistics.median(ratios)
    benchmark.extra_info["at most"] = bar
    benchmark.pedantic(  # type: ignore[no-untyped-call]  # untyped there
        work, setup=lambda: (setup(), {}), rounds=rounds
    )
