"""The split matrix: each case, cut in every way, on every endpoint, as a stream and without one.

``python -m cases.matrix`` with the folder of the tests on the path; names or beginnings of names
choose cases. Cases are shared out to as many processes as there are cores.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from multiprocessing import get_context

import anyio
import attrs

from antiphon.runs.plan import RunPlan
from cases.cutting import RANDOM_CUTS, Cut, cuts, pieces
from cases.files import Case, cases
from cases.stage import Answered, Stage, body_of, stage, streamed
from cases.stress import is_stressed, stressed
from cases.verdict import differences, meaning, steady

SHOWN = 12
"""Differences that are printed in full."""
QUICK = 3
"""As recorded, whole, and by characters."""
CHECKED = 40
"""Of so many cuts, one goes through the stream checker; the first three always do."""
SIZES = (10**9, 4096, 200)
"""Characters a step of what is too large to be cut at every place."""
ONE_BY_ONE = 20_000
"""Characters up to which it is cut at all of them at once, too."""


@attrs.define
class Tally:
    """``splits``: cuts of the cases; ``answers``: of these, on each endpoint, in both forms."""

    cases: int = 0
    splits: int = 0
    answers: int = 0
    differing: Counter[str] = attrs.field(factory=Counter)
    first: list[str] = attrs.field(factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.splits += other.splits
        self.answers += other.answers
        self.differing += other.differing
        self.first += other.first

    def differs(self, case: Case, where: str, what: str) -> None:
        self.differing[case.name] += 1
        if self.differing[case.name] <= 2:
            self.first.append(f"{case.name}, {where}: {what}")


def playable(chosen: Sequence[str] = ()) -> list[Case]:
    """The cases of an answer that an engine makes and one client reads to its end."""
    return [
        case
        for case in (*cases(), *stressed())
        if case.recording is not None
        and not case.is_stored
        and (not chosen or any(case.name.startswith(name) for name in chosen))
    ]


async def run(chosen: Sequence[Case], *, quick: bool = False) -> Tally:
    """All cuts of these cases on every endpoint; ``quick``: three, on their own endpoint."""
    tally = Tally()
    recordings = {case.name: case.recording for case in chosen if case.recording is not None}
    async with stage(recordings) as served:
        for case in chosen:
            tally.cases += 1
            await _case(served, case, tally, quick)
    return tally


async def _case(served: Stage, case: Case, tally: Tally, quick: bool) -> None:
    assert case.recording is not None
    plans: dict[str, RunPlan] = {}
    for endpoint, body in case.bodies().items():
        if quick and endpoint != case.endpoint:
            continue
        plan, data = await served.plan(endpoint, streamed(endpoint, body))
        if plan is None:
            tally.differs(case, endpoint, f"is refused: {data.decode()}")
            continue
        plans[endpoint] = plan
        await _over_asgi(served, case, endpoint, data, tally)
    if len(case.recording.choices) > 1 or not plans:
        return
    first: dict[str, object] = {}
    for number, cut in enumerate(islice(_cuts(case), QUICK if quick else None)):
        tally.splits += 1
        answers = await served.play(list(plans.values()), cut.choice)
        for endpoint, answered in zip(plans, answers, strict=True):
            tally.answers += 2
            checked = number < 3 or number % CHECKED == 0
            for what in _found(case, endpoint, answered, cut, first, checked=checked):
                tally.differs(case, f"{endpoint}, {cut.name}", what)


async def _over_asgi(served: Stage, case: Case, endpoint: str, data: bytes, tally: Tally) -> None:
    """The case as recorded, through the whole application."""
    tally.answers += 2
    frames = [frame + b"\n\n" for frame in data.split(b"\n\n") if frame]
    refused = not data.startswith((b"event:", b"data:"))
    plain = {**case.bodies()[endpoint], "stream_options": None}
    status, unary = await served.ask(endpoint, plain)
    body = body_of(unary) if status == 200 else None
    answered = Answered((), None, body_of(data)) if refused else Answered(frames, None)
    found = list(differences(case, endpoint, answered, merged=False, checked=not refused))
    if (body is None) != case.fails:
        found.append(f"without a stream: {unary.decode()}")
    for what in found:
        tally.differs(case, f"{endpoint}, over ASGI", what)


def _cuts(case: Case) -> Iterator[Cut]:
    assert case.recording is not None
    choice = case.recording.choices[0]
    if not is_stressed(case):
        yield from cuts(choice, case.name)
        return
    sizes = (*SIZES, 1) if len(case.text) < ONE_BY_ONE else SIZES
    yield from (pieces(choice, size) for size in sizes)


def _found(
    case: Case,
    endpoint: str,
    answered: Answered,
    cut: Cut,
    first: dict[str, object],
    *,
    checked: bool,
) -> Iterator[str]:
    yield from differences(case, endpoint, answered, merged=cut.merged, checked=checked)
    if answered.body is None:
        return
    said = steady(case, meaning(endpoint, answered.body))
    if first.setdefault(endpoint, said) != said:
        yield f"another body than in the first cut: {said}\n    first {first[endpoint]}"


def _share(names: Sequence[str]) -> Tally:
    logging.disable(logging.ERROR)  # engines that fail are among the cases
    chosen = set(names)
    return anyio.run(run, [case for case in playable() if case.name in chosen])


def shares(chosen: Iterable[Case], count: int) -> list[list[str]]:
    """The names in ``count`` parts of about the same work: a cut costs as much as its text."""
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for case in sorted(chosen, key=lambda case: -len(case.text)):
        lightest = sizes.index(min(sizes))
        parts[lightest].append(case.name)
        sizes[lightest] += 600 if is_stressed(case) else len(case.text) + RANDOM_CUTS
    return [part for part in parts if part]


def main(arguments: Sequence[str]) -> int:
    """Print cases, splits and differences; 1 where there is a difference."""
    began = time.monotonic()
    chosen, tally = playable(arguments), Tally()
    parts = shares(chosen, min(2, os.cpu_count() or 1))
    with get_context("spawn").Pool(len(parts)) as pool:
        for part in pool.imap_unordered(_share, parts):
            tally.add(part)
    sys.stdout.writelines(f"{text}\n" for text in tally.first[:SHOWN])
    sys.stdout.writelines(f"{name}: {count} differ\n" for name, count in tally.differing.items())
    sys.stdout.write(
        f"{tally.cases} cases x {tally.splits / max(tally.cases, 1):.0f} splits = {tally.splits}, "
        f"{tally.answers} answers, {tally.differing.total()} differences, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
