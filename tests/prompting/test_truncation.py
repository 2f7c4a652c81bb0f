"""Which items go when a history is too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.prompting.truncation import units, without_oldest
from antiphon.requests.input_items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputItem,
    InputMessage,
    ReasoningItem,
)


def says(role: Any, text: str = "x") -> InputMessage:
    return InputMessage(role=role, content=text)


def call(call_id: str) -> FunctionCallItem:
    return FunctionCallItem(type="function_call", call_id=call_id, name="f", arguments="{}")


def output(call_id: str) -> FunctionCallOutputItem:
    return FunctionCallOutputItem(type="function_call_output", call_id=call_id, output="y")


def reasoning() -> ReasoningItem:
    return ReasoningItem(type="reasoning", summary=[])


def fewest(items: Sequence[InputItem], room: int) -> list[InputItem] | None:
    return without_oldest(items, lambda left: list(left) if len(left) <= room else None)


def test_the_newest_user_message_and_instructions_are_no_units() -> None:
    items: list[InputItem] = [
        says("system"),
        says("user"),
        says("assistant"),
        says("developer"),
        says("user"),
    ]
    assert units(items) == [{1}, {2}]


def test_a_call_goes_with_its_outputs() -> None:
    items: list[InputItem] = [
        says("user"),
        call("a"),
        call("b"),
        output("b"),
        output("a"),
        says("assistant"),
    ]
    assert units(items) == [{1, 4}, {2, 3}, {5}]


def test_an_id_that_is_used_again_names_another_call() -> None:
    items: list[InputItem] = [call("a"), output("a"), says("user"), call("a"), output("a")]
    assert units(items) == [{0, 1}, {3, 4}]


def test_the_oldest_go_first_and_no_more_than_need_be() -> None:
    items: list[InputItem] = [says("user", "1"), reasoning(), says("assistant"), says("user", "2")]
    assert fewest(items, 4) == items
    assert fewest(items, 3) == items[1:]
    assert fewest(items, 2) == items[2:]
    assert fewest(items, 1) == items[3:]
    assert fewest(items, 0) is None


@pytest.mark.parametrize("room", [0, 1])
def test_what_cannot_go_and_does_not_fit_is_the_end(room: int) -> None:
    assert fewest([says("system"), says("user")], room) is None


KINDS = st.sampled_from(["user", "assistant", "system", "call", "output", "reasoning"])


@st.composite
def histories(draw: st.DrawFn) -> list[InputItem]:
    items: list[InputItem] = []
    calls: list[str] = []
    for at, kind in enumerate(draw(st.lists(KINDS, max_size=20))):
        if kind == "call":
            calls.append(f"c{at}")
            items.append(call(calls[-1]))
        elif kind == "output" and calls:
            items.append(output(draw(st.sampled_from(calls))))
        elif kind == "reasoning":
            items.append(reasoning())
        elif kind not in ("output", "reasoning"):
            items.append(says(kind, str(at)))
    return items


@given(items=histories(), room=st.integers(0, 21))
def test_what_is_left_is_the_longest_history_that_keeps_its_pairs(
    items: list[InputItem], room: int
) -> None:
    candidates = units(items)
    lengths = [len(items) - sum(map(len, candidates[:gone])) for gone in range(len(candidates) + 1)]
    fitting = [length for length in lengths if length <= room]
    left = fewest(items, room)
    assert (None if left is None else len(left)) == max(fitting, default=None)
    if left is not None:
        called = {item.call_id for item in left if isinstance(item, FunctionCallItem)}
        answered = {item.call_id for item in left if isinstance(item, FunctionCallOutputItem)}
        assert answered <= called
