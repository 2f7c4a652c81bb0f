"""Rows: each kind of event, and what is no row."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory import EventLog
from responsory import events as ev
from responsory.errors import LogError
from responsory.rows import from_row, to_row
from responsory.testing.strategies import logs
from responsory.values import Logprob, TopLogprob, Usage

ENTRY = Logprob("é", -0.5, b"\xc3\xa9", (TopLogprob("?", -1.0, b"\xff"),))

ROWS: list[tuple[ev.Event, list[Any]]] = [
    (ev.Created(0, "r1", 5, False, {"model": "m"}), ["created", 0, "r1", 5, False, {"model": "m"}]),
    (ev.Queued(1), ["queued", 1]),
    (ev.InProgress(1), ["in_progress", 1]),
    (ev.ItemAdded(2, 0, "message"), ["item_added", 2, 0, "message"]),
    (ev.ItemAdded(2, 0, "message", "commentary"), ["item_added", 2, 0, "message", "commentary"]),
    (
        ev.ItemAdded(2, 0, "function_call", None, "f"),
        ["item_added", 2, 0, "function_call", None, "f"],
    ),
    (ev.PartAdded(3, 0, 0, "output_text"), ["part_added", 3, 0, 0, "output_text"]),
    (ev.TextDelta(4, 0, 0, "Hi"), ["text_delta", 4, 0, 0, "Hi"]),
    (
        ev.TextDelta(4, 0, 0, "é", (ENTRY,)),
        ["text_delta", 4, 0, 0, "é", [["é", -0.5, None, [["?", -1.0, [255]]]]]],
    ),
    (ev.TextDone(5, 0, 0, "Hi"), ["text_done", 5, 0, 0, "Hi"]),
    (ev.RefusalDelta(4, 0, 0, "no"), ["refusal_delta", 4, 0, 0, "no"]),
    (ev.RefusalDone(4, 0, 0, "no"), ["refusal_done", 4, 0, 0, "no"]),
    (ev.ReasoningDelta(4, 0, 0, "so"), ["reasoning_delta", 4, 0, 0, "so"]),
    (ev.ReasoningDone(4, 0, 0, "so"), ["reasoning_done", 4, 0, 0, "so"]),
    (ev.PartDone(6, 0, 0), ["part_done", 6, 0, 0]),
    (ev.InputDelta(3, 0, "{}"), ["input_delta", 3, 0, "{}"]),
    (ev.InputDone(4, 0, "{}"), ["input_done", 4, 0, "{}"]),
    (ev.ItemDone(7, 0, "completed"), ["item_done", 7, 0, "completed"]),
    (ev.Completed(8, Usage(1, 2, 3, 4, 5), 6), ["completed", 8, [1, 2, 3, 4, 5], 6]),
    (
        ev.Incomplete(8, Usage(1, 2), "max_output_tokens"),
        ["incomplete", 8, [1, 2, 0, 0, 0], "max_output_tokens"],
    ),
    (ev.Errored(8, "c", "m"), ["errored", 8, "c", "m"]),
    (ev.Failed(9, Usage(1, 2), "c", "m"), ["failed", 9, [1, 2, 0, 0, 0], "c", "m"]),
    (ev.Cancelled(8, Usage(1, 2)), ["cancelled", 8, [1, 2, 0, 0, 0]]),
]


@pytest.mark.parametrize(("event", "row"), ROWS, ids=lambda value: type(value).__name__)
def test_row(event: ev.Event, row: list[Any]) -> None:
    assert to_row(event) == row
    assert from_row(json.loads(json.dumps(row))) == event


def test_every_kind_has_a_row() -> None:
    assert {type(event) for event, _ in ROWS} == set(ev.EVENTS)
    assert len({event.kind for event in ev.EVENTS}) == len(ev.EVENTS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["exploded", 0], "unknown kind of event: 'exploded'"),
        ([7, 0], "unknown kind of event: 7"),
        ([], "not a row"),
        ("queued", "not a row"),
        ({"kind": "queued"}, "not a row"),
        (b"queued", "not a row"),
        (None, "not a row"),
        (["queued"], "not a row"),
        (["created", 0], "5 to 5 values, not 1"),
        (["queued", 1, 2], "1 to 1 values, not 2"),
        (["queued", "1"], "seq cannot be '1'"),
        (["queued", True], "seq cannot be True"),
        (["created", 0, "r1", 5, 1, {}], "background cannot be 1"),
        (["created", 0, "r1", 5, False, []], r"echo cannot be \[\]"),
        (["item_added", 2, 0, "picture"], "type cannot be 'picture'"),
        (["item_added", 2, 0, "refusal"], "type cannot be 'refusal'"),
        (["part_added", 2, 0, 0, "message"], "type cannot be 'message'"),
        (["item_done", 2, 0, "done"], "status cannot be 'done'"),
        (["cancelled", 2, [1, 2]], "usage cannot be"),
        (["cancelled", 2, None], "a bad `cancelled` row"),
        (["text_delta", 2, 0, 0, "a", [["a"]]], "a bad `text_delta` row"),
    ],
)
def test_bad_rows(row: Any, message: str) -> None:
    with pytest.raises(LogError, match=message):
        from_row(row)


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


CREATED = ["created", 0, "r1", 5, False, {}]
COMPLETED = ["completed", 1, [1, 1, 0, 0, 0], 5, "stop"]
DELTA = ["text_delta", 1, 0, 0, "a", [["a", -0.5, None, [["b", -1.0, [255]]]]]]
COUNTS = [-1, True, 1.0, "1", None, 2**53, 10**5000]
HALF = "a\ud800"
ECHOES: list[Any] = [
    *([], "x", None),
    *({HALF: 1}, {"a": HALF}, {"a": [{"b": HALF}]}, {1: 2}, {"a": {None: 1}}),
    *({"a": math.nan}, {"a": [math.inf]}, {"a": 10**400}, {"a": b""}, {"a": {1}}),
    *({"a": deep(256)}, {"a": deep(100_000)}),
]


def without(values: list[Any], *fine: Any) -> list[Any]:
    return [value for value in values if not any(value is own for own in fine)]


@pytest.mark.parametrize(
    ("row", "path", "values"),
    [
        (CREATED, [1], COUNTS),
        (CREATED, [2], [5, None, HALF, ["r1"]]),
        (CREATED, [3], COUNTS),
        (CREATED, [4], [0, 1, None, "false"]),
        (CREATED, [5], ECHOES),
        (COMPLETED, [2], [[1, 1, 0, 0], [1, 1, 0, 0, 0, 0], "11000", {}, None, 5]),
        (COMPLETED, [2, 0], COUNTS),
        (COMPLETED, [2, 4], COUNTS),
        (COMPLETED, [3], without(COUNTS, None)),
        (COMPLETED, [4], [-1, True, 1.5, 2**53, HALF, ["</s>"]]),
        (DELTA, [2], COUNTS),
        (DELTA, [3], COUNTS),
        (DELTA, [4], [5, None, HALF, ["a"]]),
        (DELTA, [5], [None, "", {}, 5, [None], ["abcd"], [{}], [[]], [["a", -0.5, None]]]),
        (DELTA, [5, 0, 0], [5, None, HALF, b"a"]),
        (DELTA, [5, 0, 1], [True, "-0.5", math.nan, math.inf, -math.inf, [], 10**400]),
        (DELTA, [5, 0, 2], [5, 10**12, "a", {}, [256], [-1], [1.0], [True], ["a"], [None]]),
        (DELTA, [5, 0, 3], [None, "", 5, {}, ["abc"], [["b", -1.0]], [["b", -1.0, None, []]]]),
        (DELTA, [5, 0, 3, 0, 0], [5, None, HALF]),
        (DELTA, [5, 0, 3, 0, 1], [True, "x", math.nan]),
        (DELTA, [5, 0, 3, 0, 2], [5, [256]]),
        (["item_added", 2, 0, "message", "commentary"], [4], ["", "Commentary", 5, False, []]),
        (["item_added", 2, 0, "function_call", None, "f", "c"], [5], [5, HALF, []]),
        (["item_added", 2, 0, "function_call", None, "f", "c"], [6], [5, HALF, []]),
        (["item_done", 2, 0, "completed"], [3], ["", "failed", None, 1, []]),
        (["incomplete", 2, [1, 1, 0, 0, 0], "content_filter"], [3], ["length", None, 1]),
        (["errored", 2, "c", "m"], [2], [None, 5, HALF]),
        (["failed", 2, [1, 1, 0, 0, 0], "c", "m"], [4], [None, 5, HALF]),
    ],
)
def test_bad_values(row: list[Any], path: list[int], values: list[Any]) -> None:
    assert to_row(from_row(row)) == row
    for value in values:
        with pytest.raises(LogError, match=rf"^(a bad `{row[0]}` row: \w+ |seq cannot be )"):
            from_row(replaced(row, path, value))


@pytest.mark.parametrize(
    ("row", "path", "values"),
    [
        (CREATED, [3], [0, 2**53 - 1]),
        (CREATED, [5], [{"a": deep(255)}, {"a": [1e308, -(10**308), True, None]}]),
        (CREATED, [5], [{"a": sys.float_info.max}, {"": "\U0010ffff\x00"}]),
        (COMPLETED, [2], [[0] * 5, [2**53 - 1] * 5]),
        (COMPLETED, [4], ["", 0, 2**53 - 1]),
        (DELTA, [5, 0, 1], [0.5, -0.0, -sys.float_info.max]),
        (DELTA, [5, 0, 2], [[], [0, 255]]),
    ],
)
def test_good_values(row: list[Any], path: list[int], values: list[Any]) -> None:
    for value in values:
        good = replaced(row, path, value)
        assert to_row(from_row(good)) == good


def replaced(row: list[Any], path: list[int], value: Any) -> Any:
    if not path:
        return value
    at, *rest = path
    return [*row[:at], replaced(row[at], rest, value), *row[at + 1 :]]


def test_a_message_is_short_whatever_the_value() -> None:
    for value in ("x" * 10**6, deep(10**5), [0] * 10**6, 10**10000, {"a": deep(10**5)}):
        for row in (value, [value, 0], ["queued", value], ["cancelled", 2, value]):
            with pytest.raises(LogError) as caught:
                from_row(row)
            assert len(str(caught.value)) < 300


# --- writing ------------------------------------------------------------------------------------

TOKEN = Logprob("a", -0.5, b"a")


@pytest.mark.parametrize(
    "event",
    [
        ev.Created(0, HALF, 5, False, {}),
        ev.Created(0, "r1", -5, False, {}),
        *(ev.Created(0, "r1", 5, False, echo) for echo in ECHOES),
        ev.Queued(2**53),
        ev.TextDelta(1, -1, 0, "a"),
        ev.TextDelta(1, 0, 0, HALF),
        ev.TextDelta(1, 0, 0, "a", (Logprob(HALF, -0.5, b"a"),)),
        ev.TextDelta(1, 0, 0, "a", (Logprob("a", -0.5, b"a", (TopLogprob(HALF, -1.0, b"b"),)),)),
        ev.Completed(1, Usage(1, 1), 5, -1),
        ev.Failed(1, Usage(1, 1), "c", HALF),
    ],
    ids=lambda event: event.kind,
)
def test_what_could_not_be_read_is_not_written(event: ev.Event) -> None:
    with pytest.raises(LogError, match=f"^a bad `{event.kind}` row: "):
        to_row(event)


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
def test_a_logprob_that_json_cannot_say(value: float) -> None:
    """It is null, and read as minus infinity: every projection shows the same floor."""
    event = ev.TextDelta(
        1, 0, 0, "a", (Logprob("a", value, b"a", (TopLogprob("b", value, b"b"),)),)
    )
    row = json.loads(json.dumps(to_row(event), allow_nan=False))
    assert row[5] == [["a", None, None, [["b", None, None]]]]
    read = from_row(row)
    assert isinstance(read, ev.TextDelta)
    assert [read.logprobs[0].logprob, read.logprobs[0].top[0].logprob] == [-math.inf, -math.inf]


@settings(deadline=None)
@given(logs() | logs(ended=False))
def test_every_log_comes_back(made: tuple[EventLog, list[int]]) -> None:
    log = made[0]
    for stored in [log, log.compact()] if log.terminal else [log]:
        rows = [json.loads(json.dumps(row, allow_nan=False)) for row in stored.rows()]
        assert EventLog.from_rows(rows) == stored
        assert EventLog.from_lines(stored.lines()) == stored
        assert EventLog.from_lines(b"".join(stored.lines()).decode().splitlines()) == stored


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(deadline=None)
@given(
    st.sampled_from([event.kind for event in ev.EVENTS]).flatmap(
        lambda kind: st.lists(json_values, max_size=7).map(lambda values: [kind, *values])
    )
    | json_values
)
def test_any_json_is_a_row_or_refused(value: Any) -> None:
    try:
        event = from_row(value)
    except LogError:
        return
    assert from_row(to_row(event)) == event
