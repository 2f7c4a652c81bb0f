"""What each field of a stored event may hold: read and written alike, or refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from responsory import events as ev
from responsory.errors import LogError
from responsory.lines import to_line
from responsory.rows import KINDS, SHAPES, checked_row, from_row, to_row
from responsory.values import Logprob, Tokens, TopLogprob, Usage

COUNTS: tuple[list[Any], list[Any]] = (
    [0, 1, 2**53 - 1],
    [-1, 2**53, 1.0, "1", True, None, [1]],
)
TEXTS: tuple[list[Any], list[Any]] = (["", "a", "é\x00"], [None, 1, b"a", ["a"], "\ud800"])


def or_none(values: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
    return [None, *values[0]], [value for value in values[1] if value is not None]


def choices(*values: Any) -> tuple[list[Any], list[Any]]:
    known = [None, "commentary", "final_answer", "completed", "incomplete", "content_filter",
             "max_output_tokens", "message", "reasoning", "output_text", "refusal"]  # fmt: skip
    return [*values], [value for value in [*known, "", 1, ["a"]] if value not in values]


VALUES: Mapping[str, tuple[list[Any], list[Any]]] = {
    "seq": COUNTS,
    "id": TEXTS,
    "created_at": COUNTS,
    "background": ([True, False], [0, 1, None, "true"]),
    "echo": ([{}, {"a": [1, None, 0.5, "b", {"c": True}]}], [None, [], "{}", {"a": math.nan}]),
    "item": COUNTS,
    "part": COUNTS,
    "phase": choices(None, "commentary", "final_answer"),
    "name": or_none(TEXTS),
    "call_id": or_none(TEXTS),
    "text": TEXTS,
    "status": choices("completed", "incomplete"),
    "completed_at": or_none(COUNTS),
    "stop": ([None, "", "END", 0, 2**53 - 1], [-1, 2**53, 1.0, True, ["a"], "\ud800"]),
    "reason": choices("max_output_tokens", "content_filter"),
    "code": TEXTS,
    "message": TEXTS,
}
TYPES: Mapping[type[ev.Event], tuple[list[Any], list[Any]]] = {
    ev.ItemAdded: choices("message", "reasoning", "function_call", "custom_tool_call"),
    ev.PartAdded: choices("output_text", "refusal", "reasoning_text"),
}
TOKENS: list[tuple[Logprob, list[Any]]] = [
    (Logprob("a", -0.5, b"a"), ["a", -0.5, None, []]),
    (Logprob("", -1.0, b"\xff"), ["", -1.0, [255], []]),
    (Logprob("a", -math.inf, b""), ["a", None, [], []]),
    (
        Logprob("a", 0.0, b"a", (TopLogprob("b", -2.0, b"\x00"), TopLogprob("a", 0.0, b"a"))),
        ["a", 0.0, None, [["b", -2.0, [0]], ["a", 0.0, None]]],
    ),
    (Logprob("", None, b""), ["", False, None, []]),
    (Logprob("a", None, b"\x00", (), 0), ["a", False, [0], [], 0]),
    (
        Logprob("a", -1.0, b"a", (TopLogprob("b", -2.0, b"b", 7), TopLogprob("c", 0.0, b"c")), 9),
        ["a", -1.0, None, [["b", -2.0, None, 7], ["c", 0.0, None]], 9],
    ),
]
BAD_TOKENS: list[Any] = [
    None, "a", ["a", -0.5, None], ["a", -0.5, None, [], 1, 1], [1, -0.5, None, []],
    ["a", -0.5, None, [], None], ["a", -0.5, None, [], -1], ["a", -0.5, None, [], 1.0],
    ["a", 0, None, [["b", 0, None, None]]], ["a", 0, None, [["b", 0, None, 1, 1]]],
    ["a", 0, None, [["b", False, None]]], [1, False, None, []], ["a", False, 1, []],
    ["a", "0", None, []], ["a", True, None, []], ["a", 10**400, None, []], ["a", -0.5, "a", []],
    ["a", -0.5, [256], []], ["a", -0.5, [-1], []], ["a", -0.5, [True], []], ["a", -0.5, [1.0], []],
    ["a", -0.5, None, None], ["a", -0.5, None, [["b", -2.0]]], ["a", -0.5, None, ["abc"]],
    ["a", -0.5, None, [["b", -2.0, None, []]]], ["\ud800", -0.5, None, []],
]  # fmt: skip
BAD_IDS: list[Any] = [None, 1, "1", [-1], [True], [1.0], [None], [2**53], [[1]], {"1": 1}]
BAD_TOLD: list[Any] = [
    1, "ab", [], [[1]], [[1], 2, 3], [1, 2], [[1], None], [[1], -1], [[1], True], [None, 1],
]  # fmt: skip
BAD_CUTS: list[Any] = [None, 1, "ab", [1], [[1]], [[1, 2, 3]], [[-1, 0]], [[0, -1]], [[True, 0]]]
BAD_USAGES: list[Any] = [
    None, [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, -1], [True, 2, 3, 4, 5],
    [1, "2", 3, 4, 5], [1, 2, 3.0, 4, 5], "12345", {"a": 1},
]  # fmt: skip
SPECIAL: Mapping[str, tuple[Any, Any]] = {
    "usage": ([5, 4, 3, 2, 1], Usage(5, 4, 3, 2, 1)),
    "tokens": ([[5, 2], 9], Tokens((5, 2), 9)),
    "ids": ([7, 0], (7, 0)),
    "cuts": ([[3, 1], [2, 0]], ((3, 1), (2, 0))),
    "logprobs": ([row for _, row in TOKENS], tuple(entry for entry, _ in TOKENS)),
}

FIELDS = [
    (kind, place, name)
    for kind, shape in KINDS.items()
    for place, name in enumerate(shape.names)
    if name not in SPECIAL
]


def values_of(event: type[ev.Event], name: str) -> tuple[list[Any], list[Any]]:
    return TYPES[event] if name == "type" else VALUES[name]


def full(kind: str) -> tuple[list[Any], list[Any]]:
    """A row with every field, none of them its default, and the values of its event."""
    shape = KINDS[kind]
    pairs = [SPECIAL.get(name) or values_of(shape.event, name)[0][-1:] * 2 for name in shape.names]
    return [kind, *(stored for stored, _ in pairs)], [value for _, value in pairs]


def test_every_kind_and_field_has_its_values() -> None:
    assert {shape.event for shape in KINDS.values()} == set(SHAPES) == set(ev.EVENTS)
    names = {name for shape in KINDS.values() for name in shape.names}
    assert names == {*VALUES, *SPECIAL, "type"}
    assert {event for event in SHAPES if "type" in SHAPES[event].names} == set(TYPES)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_kept(kind: str) -> None:
    row, values = full(kind)
    event = KINDS[kind].event(*values)
    assert from_row(row) == event
    assert to_row(event) == row


@pytest.mark.parametrize(("kind", "place", "name"), FIELDS)
def test_what_a_field_may_hold(kind: str, place: int, name: str) -> None:
    event, (good, bad) = KINDS[kind].event, values_of(KINDS[kind].event, name)
    row, values = full(kind)
    for value in good:
        row[place + 1] = values[place] = value
        assert from_row(row) == event(*values)
        assert from_row(to_row(event(*values))) == event(*values)
        assert type(getattr(from_row(row), name)) is type(value)
    for value in bad:
        row[place + 1] = values[place] = value
        with pytest.raises(LogError, match=name):
            from_row(row)
        with pytest.raises(LogError, match=f"^a bad `{kind}` row: {name} "):
            to_row(event(*values))


@pytest.mark.parametrize(("entry", "stored"), TOKENS)
def test_a_token_is_kept(entry: Logprob, stored: list[Any]) -> None:
    event = ev.TextDelta(4, 0, 0, "a", (entry,))
    assert to_row(event) == ["text_delta", 4, 0, 0, "a", [stored]]
    assert from_row(["text_delta", 4, 0, 0, "a", [stored]]) == event


@pytest.mark.parametrize("stored", BAD_TOKENS)
def test_what_is_no_token(stored: Any) -> None:
    with pytest.raises(
        LogError, match=r"^a bad `text_delta` row: logprobs (cannot be|holds|bytes) "
    ):
        from_row(["text_delta", 4, 0, 0, "a", [stored]])


@pytest.mark.parametrize("stored", BAD_IDS)
def test_what_are_no_ids(stored: Any) -> None:
    with pytest.raises(LogError, match=r"^a bad `input_done` row: ids "):
        from_row(["input_done", 4, 0, "a", stored])
    with pytest.raises(LogError, match=r"^a bad `input_done` row: ids "):
        to_row(ev.InputDone(4, 0, "a", stored))


@pytest.mark.parametrize("stored", BAD_TOLD)
def test_what_a_delta_cannot_tell_of_its_tokens(stored: Any) -> None:
    with pytest.raises(LogError, match=r"^a bad `input_delta` row: tokens cannot be "):
        from_row(["input_delta", 4, 0, "a", stored])
    with pytest.raises(LogError, match=r"^a bad `input_delta` row: tokens cannot be "):
        to_row(ev.InputDelta(4, 0, "a", stored))


@pytest.mark.parametrize("stored", BAD_CUTS)
def test_what_are_no_cuts(stored: Any) -> None:
    with pytest.raises(LogError, match=r"^a bad `text_done` row: cuts cannot be "):
        from_row(["text_done", 4, 0, 0, "a", [], [], stored])
    with pytest.raises(LogError, match=r"^a bad `text_done` row: cuts cannot be "):
        to_row(ev.TextDone(4, 0, 0, "a", (), (), stored))


def test_tokens_that_are_not_told_are_left_out() -> None:
    event = ev.InputDelta(4, 0, "a", None)
    assert to_row(event) == ["input_delta", 4, 0, "a"]
    assert from_row(["input_delta", 4, 0, "a"]) == event
    with pytest.raises(LogError, match=r"tokens cannot be None$"):
        from_row(["input_delta", 4, 0, "a", None])


@pytest.mark.parametrize("ids", [[1], [], None, "1", (-1,), (True,), (1, 1.0), ("1",)])
def test_what_tokens_cannot_be(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"^ids cannot be "):
        Tokens(ids, 1)
    for output in (-1, True, 1.0, None):
        with pytest.raises(ValueError, match=r"^output cannot be "):
            Tokens((1,), output)  # type: ignore[arg-type]  # what it must refuse


@pytest.mark.parametrize("stored", [["a", -0.5, None], ["a", -0.5, None, [["b", -2.0]]]])
def test_a_token_that_is_too_short_is_named(stored: Any) -> None:
    short = stored if len(stored) == 3 else stored[3][0]
    with pytest.raises(LogError, match=rf"logprobs cannot be {re.escape(repr(short))}$"):
        from_row(["text_delta", 4, 0, 0, "a", [stored]])


@pytest.mark.parametrize("stored", BAD_USAGES)
def test_what_is_no_usage(stored: Any) -> None:
    with pytest.raises(LogError, match=r"^a bad `cancelled` row: usage "):
        from_row(["cancelled", 4, stored])


def test_a_row_is_a_list_or_a_tuple() -> None:
    row: list[Any] = ["queued", 1]
    assert checked_row(row) is row
    assert checked_row(("queued", 1)) == row
    assert from_row(("queued", 1)) == ev.Queued(1)


def test_what_is_not_json_makes_no_line() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_line(["x", math.nan])
    assert to_line(["é", None]) == '["é",null]\n'.encode()
