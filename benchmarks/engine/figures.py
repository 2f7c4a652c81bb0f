"""Rounds of measurements as medians, spreads and ratios."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

import attrs
from benchmarks.engine.loads import TASKS, TITLES, Task, Timing

US = "antiphon"
WANTED: dict[tuple[Task, str], float] = {
    ("single", "llama.cpp"): 1.0,
    ("single", "transformers"): 2.5,
    ("eight", "llama.cpp"): 1.0,
    ("prefill", "llama.cpp"): 2.0,
}
"""What our figure should be at least, beside that of the other."""
WANTED_SOONER = 5.0
"""How many times sooner a second turn should begin."""


@attrs.define
class Figures:
    """Timings by task and contestant, a round at a time, and what could not be measured."""

    judged: bool = True
    """Whether the lengths are those of which something is wanted."""
    rounds: dict[Task, dict[str, dict[int, Timing]]] = attrs.field(
        factory=lambda: {task: defaultdict(dict) for task in TASKS}
    )
    reasons: dict[tuple[Task, str], str] = attrs.field(factory=dict)

    def add(self, task: Task, name: str, number: int, timing: Timing) -> None:
        """Of one round."""
        self.rounds[task][name][number] = timing

    def table(self) -> Iterator[str]:
        """Markdown, a table for each task that anybody did."""
        for task, timings in self.rounds.items():
            if not timings and not any(task == one for one, _ in self.reasons):
                continue
            yield ""
            yield f"**{TITLES[task]}**"
            yield ""
            yield "| | median | lowest – highest | antiphon beside it | wanted | last round |"
            yield "|---|---|---|---|---|---|"
            for name, rounds in timings.items():
                yield self._row(task, name, rounds)
            for (one, name), reason in self.reasons.items():
                if one == task:
                    yield f"| {name} | not measured: {reason} | | | | |"

    def _row(self, task: Task, name: str, rounds: dict[int, Timing]) -> str:
        values = [timing.value for timing in rounds.values()]
        ratio = self.ratio(task, name)
        wanted, reached = WANTED.get((task, name)), ratio
        if task == "turns" and name == US:
            wanted, reached = WANTED_SOONER, statistics.median(values)
        if not self.judged:
            wanted = None
        cells = [
            name,
            f"{statistics.median(values):.1f}",
            f"{min(values):.1f} – {max(values):.1f}",
            "" if ratio is None else f"{ratio:.2f}",
            "" if wanted is None else f"≥ {wanted:g}: {_verdict(reached, wanted)}",
            list(rounds.values())[-1].detail,
        ]
        return f"| {' | '.join(cells)} |"

    def ratio(self, task: Task, name: str) -> float | None:
        """Our figure over the other's, the median over the rounds that both have."""
        ours, theirs = self.rounds[task][US], self.rounds[task][name]
        shared = ours.keys() & theirs.keys()
        if name == US or task == "turns" or not shared:  # a turn has its ratio already
            return None
        return statistics.median(ours[number].value / theirs[number].value for number in shared)


def _verdict(reached: float | None, wanted: float) -> str:
    if reached is None:
        return "unknown"
    return "reached" if reached >= wanted else "missed"
