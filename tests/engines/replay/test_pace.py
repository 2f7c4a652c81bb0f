"""Paces: what the command line may say, when steps are due, and how steps are joined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.pace import Pace
from engines.replay.builders import MS, entry, recording, said


@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("recorded", Pace.RECORDED),
        ("full", Pace.FULL),
        ("20ms", Pace(step_ns=20 * MS)),
        ("4x20ms", Pace(step_ns=20 * MS, tokens=4)),
        ("0.5ms", Pace(step_ns=500_000)),
    ],
)
def test_parse(text: str, pace: Pace) -> None:
    assert Pace.parse(text) == pace


@pytest.mark.parametrize(
    "text",
    ["", "fast", "20", "20s", "0ms", "0x20ms", "-1ms", "4x", "x20ms", "4x20", "1e3ms", "٣ms",
     "99999x1ms", " 20ms", "20ms\n", "FULL"],
)  # fmt: skip
def test_parse_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a pace is 'recorded', 'full' or a step such as '20ms'"):
        Pace.parse(text)


def test_recorded_times_count_from_the_start() -> None:
    assert Pace.RECORDED.due_ns(1_000, 5, 12.5) == 1_000 + 12_500_000


def test_flat_out_is_always_due() -> None:
    assert Pace.FULL.due_ns(1_000, 99, 5_000) == 1_000


@given(st.integers(0, 10**12), st.integers(0, 10**6), st.integers(1, 10**9))
def test_fixed_steps_lie_on_one_grid(start_ns: int, index: int, step_ns: int) -> None:
    pace = Pace(step_ns=step_ns)
    due = pace.due_ns(start_ns, index, 77)
    assert due % step_ns == 0
    assert 0 < due - index * step_ns - start_ns <= step_ns
    assert pace.due_ns(start_ns, index + 1, 77) == due + step_ns


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=20),
    st.integers(1, 8),
    st.booleans(),
)
def test_joining_keeps_everything_and_fills_every_step_but_the_last(
    sizes: list[list[int]], tokens: int, spelled: bool
) -> None:
    steps = [
        [place, 0, ids, "".join(map(str, ids)), [entry(str(i)) for i in ids] if spelled else None]
        for place, ids in enumerate(sizes)
    ]
    (choice,) = recording(*steps, ["finish", 0, "stop"]).choices
    joined = list(Pace(step_ns=MS, tokens=tokens).join(choice.steps))
    assert [i for step in joined for i in step.ids] == [i for ids in sizes for i in ids]
    for step in joined:
        assert step.text == "".join(map(str, step.ids))
        assert step.spelling is None or [int(s.text) for s in step.spelling] == list(step.ids)
    assert all(len(step.ids) >= tokens for step in joined[:-1])
    longest = max(map(len, sizes), default=0)
    assert all(len(step.ids) < tokens + longest for step in joined)


def test_joined_steps_take_the_time_of_the_last() -> None:
    (choice,) = recording(*said("a", "b", "c"), ["finish", 0, "stop"]).choices
    assert [step.ms for step in Pace(step_ns=MS, tokens=2).join(choice.steps)] == [20, 30]


def test_bytes_stay_without_text_when_joined() -> None:
    (choice,) = recording(
        [1, 0, [1], None, None], [2, 0, [2], None, None], tokenizer="bytes"
    ).choices
    (step,) = Pace(step_ns=MS, tokens=2).join(choice.steps)
    assert step.text is None
