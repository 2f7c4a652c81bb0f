"""What a run of the load calls lost, and what its table shows."""

from __future__ import annotations

import io

import attrs
import pytest
from benchmarks.mixed_load.asks import CHAT, Ask, asks
from benchmarks.mixed_load.load import Outcome, Report
from benchmarks.mixed_load.reading import Told
from benchmarks.mixed_load.server import Rest
from benchmarks.mixed_load.table import summary, table
from benchmarks.mixed_load.texts import ANYTHING, texts_of
from rich.console import Console

from known_replies import FOLDER

IDLE = Rest(running=0, waiting=0, held=0, cached=3, free=7, failed=0, restarts=0)
STAYS = Ask("stays", CHAT, {})
LEAVES = Ask("leaves", CHAT, {"stream": True}, 10)
SAID = Told(choices=(("a", "stop"),), tokens=2)
OTHER = Told(choices=(("b", "stop"),), tokens=2)
WELL = (Outcome(STAYS, SAID, SAID), Outcome(LEAVES, Told(), Told(left=True)))


def report(*outcomes: Outcome, rest: Rest = IDLE) -> Report:
    return Report([*WELL, *outcomes], 2.0, rest)


def test_nothing_is_lost() -> None:
    assert report().troubles() == []


@pytest.mark.parametrize(
    ("outcome", "any_answer"),
    [
        (Outcome(STAYS, SAID, Told(trouble="503")), True),
        (Outcome(LEAVES, Told(), Told(trouble="500")), True),
        (Outcome(LEAVES, Told(), SAID), True),
        (Outcome(STAYS, SAID, OTHER), False),
        (Outcome(STAYS, SAID, attrs.evolve(SAID, tokens=3)), False),
        (Outcome(STAYS, Told(trouble="400"), SAID), False),
    ],
)
def test_each_trouble_is_told(outcome: Outcome, any_answer: bool) -> None:
    assert len(report(outcome).troubles()) == 1
    assert len(report(outcome).troubles(any_answer=True)) == int(any_answer)


@pytest.mark.parametrize("name", ["running", "waiting", "held", "failed", "restarts"])
def test_what_is_left_afterwards_is_trouble(name: str) -> None:
    (trouble,) = report(rest=attrs.evolve(IDLE, **{name: 1})).troubles(any_answer=True)
    assert f"{name}=1" in trouble


def test_the_table_counts_by_kind() -> None:
    made = report(Outcome(STAYS, SAID, OTHER), Outcome(STAYS, SAID, Told(trouble="503")))
    console = Console(file=io.StringIO(), width=120)
    console.print(table(made))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert rows == [
        ["stays", "3", "2", "1", "0", "0.00", "0.00"],
        ["leaves", "1", "-", "-", "1", "-", "0.00"],
    ]
    assert "4 requests in 2.0 s, 4 tokens" in summary(made)
    assert "0 held, 3 cached, 7 free" in summary(made)


def test_a_round_asks_for_everything() -> None:
    """On every endpoint, whole and streamed; what a seed decides is all that differs."""
    for texts in (ANYTHING, texts_of(str(FOLDER))):
        wanted = list(asks(texts, 1))
        assert len(wanted) > 16
        assert len({(ask.path, ask.streams) for ask in wanted if ask.leaves_after is None}) == 6
        assert sum(ask.leaves_after is not None for ask in wanted) == 5
        other = list(asks(texts, 2))
        changed = {ask.kind for ask, also in zip(wanted, other, strict=True) if ask != also}
        assert changed == {"n = 4", "seeded"}
    assert texts_of(None) is texts_of("no/such/folder") is ANYTHING
