"""Results in a file: JSON lines, of a measurement's circumstances first and then of its pairs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import attrs
from benchmarks.serving.cells import Case, Pair, Row, pair_from_json, pair_to_json, row
from benchmarks.serving.machine import Machine
from benchmarks.serving.measuring import Void


@attrs.define
class Measurement:
    """One call of the tool: what was measured, where, and all that came of it."""

    title: str
    machine: Machine
    short: int
    long: int
    load_after: list[float] = attrs.Factory(list)
    pairs: dict[Case, list[Pair]] = attrs.Factory(dict)
    voids: dict[Case, Void] = attrs.Factory(dict)
    """The last of each case."""

    def add(self, result: Pair | Void) -> None:
        """Take what a visit gave."""
        if isinstance(result, Pair):
            self.pairs.setdefault(result.case, []).append(result)
        else:
            self.voids[result.case] = result

    def counted(self, case: Case) -> int:
        """Repetitions of the case that count."""
        return sum(pair.reason is None for pair in self.pairs.get(case, ()))

    def lacks(self, case: Case, repetitions: int) -> bool:
        """Whether so many repetitions of the case do not count yet, and trying again may help."""
        void = self.voids.get(case)
        return self.counted(case) < repetitions and not (void is not None and void.for_good)

    def rows(self) -> list[Row]:
        """A row for each case with a pair that counts, ordered like a table."""
        made = (row(case, pairs) for case, pairs in self.pairs.items())
        found = [each for each in made if each is not None]
        return sorted(found, key=lambda each: _place(each.case))

    def without_figure(self) -> list[tuple[Case, str]]:
        """Cases that could have a figure and have no pair that counts, and the reason why."""
        reasons = {case: pairs[-1].reason or "" for case, pairs in self.pairs.items()}
        reasons |= {case: void.reason for case, void in self.voids.items()}
        lacking = [case for case in reasons if self.lacks(case, 1)]
        return [(case, reasons[case]) for case in sorted(lacking, key=_place)]


def _place(case: Case) -> tuple[object, ...]:
    # Ours before the peers.
    peer = not case.who.startswith("antiphon")
    return case.streams, case.api, case.proto, peer, case.who, case.stalled


def begin(file: TextIO, made: Measurement) -> None:
    """Write the circumstances."""
    _write(
        file,
        {
            "kind": "measurement",
            "title": made.title,
            "short": made.short,
            "long": made.long,
            "machine": attrs.asdict(made.machine),
        },
    )


def append(file: TextIO, result: Pair | Void) -> None:
    """Write what a visit gave."""
    if isinstance(result, Pair):
        _write(file, {"kind": "pair", **pair_to_json(result)})
    else:
        _write(file, {"kind": "void", **attrs.asdict(result)})


def end(file: TextIO, made: Measurement) -> None:
    """Write the load at the end."""
    _write(file, {"kind": "end", "load_after": made.load_after})


def read(paths: Iterable[Path]) -> list[Measurement]:
    """All measurements in the files, in their order."""
    found: list[Measurement] = []
    for path in paths:
        for line in path.read_text().splitlines():
            _take(found, json.loads(line))
    return found


def _take(found: list[Measurement], data: Mapping[str, Any]) -> None:
    match data["kind"]:
        case "measurement":
            machine = Machine(**data["machine"])
            found.append(Measurement(data["title"], machine, data["short"], data["long"]))
        case "pair":
            found[-1].add(pair_from_json(data))
        case "void":
            found[-1].add(Void(Case(**data["case"]), data["reason"], data["for_good"]))
        case "end":
            found[-1].load_after = data["load_after"]


def _write(file: TextIO, data: Mapping[str, Any]) -> None:
    file.write(json.dumps(data, separators=(",", ":")) + "\n")
    file.flush()
