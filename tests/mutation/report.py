"""What a run of the mutation test has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from mutation.equivalents import Key, key
from mutation.mutants import Mutant
from mutation.trials import Verdict

Verdicts: TypeAlias = Sequence[tuple[Mutant, Verdict]]

COLUMNS = ("mutants", "killed", "timed out", "equivalent", "survived")


def survivors(verdicts: Verdicts, listed: Collection[Key]) -> list[Mutant]:
    """The mutants that no test has killed and that are not listed as equivalent."""
    return [
        mutant
        for mutant, verdict in verdicts
        if verdict is Verdict.SURVIVED and key(mutant) not in listed
    ]


def unproven(verdicts: Verdicts, listed: Collection[Key], modules: Collection[str]) -> list[Key]:
    """The listed ones that are no survivors: killed, or no mutants at all."""
    killed = {key(mutant) for mutant, verdict in verdicts if verdict is not Verdict.SURVIVED}
    lived = {key(mutant) for mutant, _ in verdicts} - killed
    return [named for named in listed if named[0] in modules and named not in lived]


def table(verdicts: Verdicts, listed: Mapping[Key, str]) -> str:
    """A line for each module and one for all; time-outs are among the killed."""
    counts: dict[str, Counter[str]] = {}
    for mutant, verdict in verdicts:
        counted = ["mutants"]
        if verdict is not Verdict.SURVIVED:
            counted += ["killed"] + ["timed out"] * (verdict is Verdict.TIMED_OUT)
        else:
            counted.append("equivalent" if key(mutant) in listed else "survived")
        for module in (mutant.module, "all"):
            counts.setdefault(module, Counter()).update(counted)
    counts["all"] = counts.pop("all", Counter())
    width = max(map(len, counts))
    lines = [f"{'module':{width}}  {'  '.join(COLUMNS)}"]
    for module, count in counts.items():
        figures = "  ".join(f"{count[name]:>{len(name)}}" for name in COLUMNS)
        lines.append(f"{module:{width}}  {figures}")
    return "\n".join(lines)
