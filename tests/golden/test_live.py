"""Streams rendered step by step, as a server does, and not from the finished log."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from golden.built import BUILT, SINGLE
from golden.folders import read
from golden.playing import RECORDINGS, play
from responsory.events import Event
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.testing import fold_chat, fold_completions

Feed = tuple[int, list[Event]]


def live(name: str) -> list[Feed]:
    """(choice, events) in the order in which a server would have them: the choices take turns."""
    if name in BUILT:
        if len(BUILT[name]) == 1:
            return [(0, group) for group in SINGLE[name.removeprefix("built/")].groups]
        per_choice = [[[event] for event in log] for log in BUILT[name]]
    else:
        recording = RECORDINGS[name]
        per_choice = [play(recording, choice).feeds for choice in recording.choices]
    turns = itertools.zip_longest(*per_choice)
    return [(index, feed) for turn in turns for index, feed in enumerate(turn) if feed]


CASES = {name: live(name) for name in (*RECORDINGS, *BUILT)}
SEVERAL = [name for name, feeds in CASES.items() if any(choice for choice, _ in feeds)]
ONE = [name for name in CASES if name not in SEVERAL]


def frames(stream: ResponsesStream | ChatStream | CompletionsStream, name: str) -> list[bytes]:
    return [frame for choice, events in CASES[name] for frame in stream.feed(choice, events)]


def options(name: str) -> dict[str, Any]:
    scored = b'"logprobs":{' in read(name)["chat.sse"]
    count = 1 + max(choice for choice, _ in CASES[name])
    return {"choices": count, "include_usage": True, "logprobs": scored}


@pytest.mark.parametrize("name", ONE)
def test_frames_do_not_depend_on_the_steps(name: str) -> None:
    files = read(name)
    assert b"".join(frames(ResponsesStream(), name)) == files["responses.sse"]
    assert b"".join(frames(ChatStream(**options(name)), name)) == files["chat.sse"]


@pytest.mark.parametrize("name", CASES)
def test_completions_fold_to_the_same_however_they_are_fed(name: str) -> None:
    """Whether the finish reason rides on the last text depends on the step; nothing else does."""
    made = fold_completions(frames(CompletionsStream(**options(name)), name))
    golden = fold_completions([read(name)["completions.sse"]])
    if made["error"] is None:
        assert made == golden
    assert made["error"] == golden["error"]


@pytest.mark.parametrize("name", SEVERAL)
def test_choices_that_take_turns_fold_to_the_same(name: str) -> None:
    made = fold_chat(frames(ChatStream(**options(name)), name))
    golden = fold_chat([read(name)["chat.sse"]])
    if made["error"] is None:
        assert made == golden
    assert made["error"] == golden["error"]


def test_the_cases_show_both_ways_to_end() -> None:
    """Some feed ends a choice together with its text, and some alone."""
    ends = {
        any(event.kind == "text_delta" for event in events)
        for feeds in CASES.values()
        for _, events in feeds
        if events[-1].kind == "completed"
    }
    assert ends == {True, False}


def test_all_bodies_are_of_the_same_time_and_id() -> None:
    for name in CASES:
        body = json.loads(read(name).get("responses.json", b"null"))
        if body is not None:
            assert (body["id"], body["created_at"]) == ("resp_r1", 1764500000)
            assert body["completed_at"] in (None, 1764500001)
