"""One playback: the rows it gives, and where ``max_tokens`` cuts them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.pace import Pace
from antiphon.engines.playback import Playback
from antiphon.engines.port import EngineError, Finish, Gauges, StepFrame
from antiphon.engines.recording import Recording
from engines.replay.builders import Rows, all_rows, entry, recording, said

STOP = ["finish", 0, "stop"]
NONE = Finish.NONE


def play(
    made: Recording, max_tokens: int = 1000, logprobs: int | None = None, pace: Pace = Pace.FULL
) -> list[StepFrame]:
    """Every row in a frame of its own, up to the terminal one."""
    playback = Playback(
        key=1,
        choice=made.choices[0],
        pace=pace,
        start_ns=0,
        max_tokens=max_tokens,
        logprobs=logprobs,
    )
    frames: list[StepFrame] = []
    over = False
    while not over and playback.due_ns is not None:
        builder = FrameBuilder(step=len(frames))
        over = playback.play(builder)
        frames.append(builder.build(0, Gauges()))
    return frames


def played(made: Recording, max_tokens: int = 1000, logprobs: int | None = None) -> Rows:
    return all_rows(play(made, max_tokens, logprobs))


def test_the_finish_rides_on_the_last_tokens() -> None:
    assert played(recording(*said("a", "b"), STOP)) == [
        (1, [0], NONE, "a"),
        (1, [1], Finish.STOP, "b"),
    ]


def test_a_finish_that_came_later_has_its_own_row() -> None:
    made = recording(*said("a"), [50, 0, [], "", None], STOP)
    assert played(made) == [(1, [0], NONE, "a"), (1, [], Finish.STOP, None)]


@pytest.mark.parametrize("end", [[], [["finish", 0, "error", {"code": "c", "message": "m"}]]])
def test_an_error_comes_after_the_last_tokens(end: list[object]) -> None:
    frames = play(recording(*said("a"), *end))
    assert all_rows(frames) == [(1, [0], NONE, "a"), (1, [], Finish.ERROR, None)]
    expected = EngineError(code="c", message="m")
    error = frames[-1].error[0]
    assert error == expected if end else error.code == "engine_failed"


def test_an_answer_of_no_tokens_is_one_terminal_row() -> None:
    assert played(recording([40, 0, [], "", None], STOP)) == [(1, [], Finish.STOP, None)]


def test_a_hold_is_never_due_again() -> None:
    made = recording(*said("a"), ["hold"])
    assert played(made) == [(1, [0], NONE, "a")]


def test_due_times_as_recorded() -> None:
    made = recording(*said("a", "b"), [70, 0, [], "", None], STOP)
    playback = Playback(key=1, choice=made.choices[0], pace=Pace.RECORDED, start_ns=5, max_tokens=9)
    due = []
    while due_ns := playback.due_ns:
        due.append(due_ns)
        if playback.play(FrameBuilder(step=0)):
            break
    assert due == [10_000_005, 20_000_005, 70_000_005]


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_no_tokens_allowed(max_tokens: int) -> None:
    assert played(recording(*said("a"), STOP), max_tokens) == [(1, [], Finish.LENGTH, None)]


def test_the_limit_wins_over_every_end_that_follows_it() -> None:
    ends: list[list[object]] = [[STOP], [["hold"]], [], [["finish", 0, "content_filter"]]]
    for end in ends:
        made = recording(*said("a", "b"), *end)
        assert played(made, 2) == [(1, [0], NONE, "a"), (1, [1], Finish.LENGTH, "b")]


def test_a_step_across_the_limit_keeps_its_text_where_borders_are_unknown() -> None:
    made = recording([1, 0, [1, 2, 3], "abc", None], [2, 0, [4], "d", None], STOP)
    assert played(made, 2) == [(1, [1, 2], Finish.LENGTH, "abc")]
    assert played(made, 3) == [(1, [1, 2, 3], Finish.LENGTH, "abc")]


def test_a_spelled_step_is_cut_at_the_token() -> None:
    made = recording([1, 0, [1, 2, 3], "abbccc", [entry("a"), entry("bb"), entry("ccc")]], STOP)
    for logprobs in (None, 0):
        assert played(made, 2, logprobs) == [(1, [1, 2], Finish.LENGTH, "abb")]


def test_a_cut_character_becomes_one_replacement_character() -> None:
    rocket = "🚀".encode()
    parts = [entry("\ufffd", rocket[:2]), entry("\ufffd", rocket[2:])]
    apart = recording([1, 0, [1], "", parts[:1]], [2, 0, [2], "🚀", parts[1:]], STOP)
    assert played(apart, 1) == [(1, [1], Finish.LENGTH, "\ufffd")]
    together = recording([1, 0, [9], "x", [entry("x")]], [2, 0, [1, 2], "🚀", parts], STOP)
    assert played(together, 2) == [(1, [9], NONE, "x"), (1, [1], Finish.LENGTH, "\ufffd")]
    assert played(together, 3)[-1] == (1, [1, 2], Finish.LENGTH, "🚀")


def test_bytes_are_cut_exactly() -> None:
    made = recording([1, 0, [1, 2, 3], None, None], STOP, tokenizer="bytes")
    assert played(made, 2) == [(1, [1, 2], Finish.LENGTH, None)]


@given(st.text(min_size=1), st.lists(st.integers(1, 4), min_size=1), st.data())
def test_a_spelled_recording_cut_anywhere_says_its_first_bytes(
    text: str, sizes: list[int], data: st.DataObject
) -> None:
    """Whatever the split into tokens and steps, n tokens say exactly the bytes of n tokens."""
    whole, place = text.encode(), 0
    tokens: list[bytes] = []
    while place < len(whole):
        size = sizes[len(tokens) % len(sizes)]
        tokens.append(whole[place : place + size])
        place += size
    rows: list[object] = []
    first, done = 0, 0
    while first < len(tokens):
        count = data.draw(st.integers(1, 3))
        step = tokens[first : first + count]
        first += count
        so_far = b"".join(tokens[:first])
        complete = len(so_far.decode("utf-8", "ignore")) if so_far != whole else len(text)
        spelled = [entry("?", token) for token in step]
        ids = list(range(len(step)))
        rows.append([len(rows), 0, ids, text[done:complete], spelled])
        done = complete
    limit = data.draw(st.integers(1, len(tokens)))
    out = played(recording(*rows, STOP), limit)
    assert sum(len(ids) for _, ids, _, _ in out) == limit
    assert out[-1][2] is Finish.LENGTH
    said_text = "".join(row[3] or "" for row in out)
    assert said_text == b"".join(tokens[:limit]).decode("utf-8", "replace")


def test_logprobs_come_only_when_asked_for() -> None:
    made = recording([1, 0, [1], "a", [entry("a", None, "x", "y", "z")]], STOP)
    (frame,) = play(made)
    assert not frame.spelling
    assert frame.logprob is None
    (frame,) = play(made, logprobs=2)
    (spelling,) = frame.spelling[0]
    assert [text for text, _, _ in spelling.top] == ["x", "y"]
    assert frame.logprob is not None
    assert list(frame.logprob) == [-0.5]
    (frame,) = play(made, logprobs=20)
    assert len(frame.spelling[0][0].top) == 3
    (frame,) = play(made, logprobs=0)
    assert [(one.text, one.logprob, one.top) for one in frame.spelling[0]] == [("a", -0.5, ())]


def test_logprobs_follow_the_cut() -> None:
    made = recording([1, 0, [1, 2], "ab", [entry("a"), entry("b")]], STOP)
    (frame,) = play(made, 1, logprobs=0)
    assert [spelling.text for spelling in frame.spelling[0]] == ["a"]


def test_logprobs_nobody_recorded_are_absent() -> None:
    (frame,) = play(recording(*said("a"), STOP), logprobs=5)
    assert not frame.spelling
    assert frame.logprob is None or math.isnan(frame.logprob[0])
    assert all_rows([frame]) == [(1, [0], Finish.STOP, "a")]


def test_a_pace_of_four_tokens_plays_four_a_row() -> None:
    made = recording(*said(*"abcdef"), STOP)
    frames = play(made, pace=Pace(step_ns=1, tokens=4))
    assert all_rows(frames) == [(1, [0, 1, 2, 3], NONE, "abcd"), (1, [4, 5], Finish.STOP, "ef")]


def test_text_without_ids_goes_on_with_the_token_before_it() -> None:
    steps = ([1, 0, [7], "wo", None], [2, 0, [], "rd", None], [3, 0, [8], "!", None])
    assert played(recording(*steps, STOP)) == [
        (1, [7], Finish.NONE, "wo"),
        (1, [], Finish.NONE, "rd"),
        (1, [8], Finish.STOP, "!"),
    ]
    assert played(recording(*steps, STOP), 1) == [
        (1, [7], Finish.NONE, "wo"),
        (1, [], Finish.LENGTH, "rd"),
    ]
