"""The checker against the library: every stream that a random life renders to is accepted and folds
to the unary body, and what is done to such a stream is noticed wherever it can be."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from responsory import events as ev
from responsory import ids
from responsory.check import Report, check_stream
from responsory.commands import Accept, Finish, Text
from responsory.log import EventLog
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
)
from responsory.response import Response
from responsory.segments import FORMATS, Piece, Segmenter
from responsory.testing import a_response
from responsory.testing.folds import parse
from responsory.testing.strategies import logs
from responsory.values import Logprob, Usage

Events: TypeAlias = list[tuple[str | None, Any]]
Life: TypeAlias = tuple[EventLog, list[int]]


def render(events: Sequence[tuple[str | None, Any]]) -> bytes:
    frames = []
    for name, data in events:
        text = data
        if not isinstance(data, str):
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        frames.append(f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n")
    return "".join(frames).encode()


def own_call_ids_differ(log: EventLog) -> bool:
    """A model family's own call ids come as they are; that no two are alike is the family's
    business, and a stream in which two are is rightly refused."""
    (created,) = (event for event in log if isinstance(event, ev.Created))
    calls = [
        event.call_id or ids.call_id(created.id, event.item)
        for event in log
        if isinstance(event, ev.ItemAdded) and event.name is not None
    ]
    return len(set(calls)) == len(calls)


lives = logs().filter(lambda life: own_call_ids_differ(life[0]))


def accepted(report: Report) -> Report:
    assert report.accepted, str(report)
    return report


def refused(events: Events, profile: Any = "openai") -> bool:
    return not check_stream(render(events), profile=profile).accepted


# --- every life -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["openai", "openresponses"])
@given(life=lives)
def test_a_responses_stream_is_accepted_and_folds_to_the_body(profile: Any, life: Life) -> None:
    log, _ = life
    frames = ResponsesStream(profile=profile).feed(0, log[:])
    report = accepted(check_stream(frames, profile=profile))
    body = response_body(log)
    if body["status"] == "cancelled":
        body["usage"] = None  # the one thing that no frame of a cancelled response tells
    assert report.result == body
    assert report.outcome == body["status"]
    assert report.events == len(frames)
    foreign = check_stream(frames, profile="foreign")
    if body["status"] == "cancelled":
        assert foreign.violation is not None
        assert foreign.violation.rule == "terminal-due"
    else:
        assert accepted(foreign).result == body


@given(lives)
def test_the_two_names_of_reasoning_events_are_told_apart(life: Life) -> None:
    log, _ = life
    reasons = any(isinstance(event, ev.ReasoningDone) for event in log)
    for mine, other in itertools.permutations(("openai", "openresponses")):
        frames = ResponsesStream(profile=mine).feed(0, log[:])  # type: ignore[arg-type]  # one of two
        assert check_stream(frames, profile=other).accepted != reasons  # type: ignore[arg-type]


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[list[ev.Event]], list[tuple[int, int, int]]]:
    """The logs of one call's choices, and the pieces in which their events come, interleaved."""
    head = ev.Created(0, "r1", 5, False, {"model": "tiny"})
    choices, pieces = [], []
    for choice in range(draw(st.integers(1, 3))):
        log, groups = draw(lives)
        choices.append([head, *log[1:]])
        borders = [0, *itertools.accumulate(groups)]
        pieces.append([(choice, *border) for border in itertools.pairwise(borders)])
    order = draw(st.permutations([index for index, own in enumerate(pieces) for _ in own]))
    queues = [iter(own) for own in pieces]
    return choices, [next(queues[index]) for index in order]


def chunks(stream: Any, call: Any) -> list[bytes]:
    choices, order = call
    frames: list[bytes] = []
    for choice, start, end in order:
        if not stream.ended:  # by the failure of one choice, for all of them
            frames += stream.feed(choice, choices[choice][start:end])
    return frames


def failed(choices: list[list[ev.Event]]) -> bool:
    return any(isinstance(log[-1], ev.Failed) for log in choices)


def finished(choices: list[list[ev.Event]]) -> bool:
    return not failed(choices) and not any(isinstance(log[-1], ev.Cancelled) for log in choices)


def without_empty_logprobs(body: dict[str, Any]) -> dict[str, Any]:
    """No text, no log probabilities: null and empty say the same."""
    for choice in body["choices"]:
        if choice["logprobs"] is not None and not any(choice["logprobs"].values()):
            choice["logprobs"] = None
    return body


@given(calls(), st.booleans(), st.booleans())
def test_chat_chunks_are_accepted_and_fold_to_the_body(
    call: Any, include_usage: bool, logprobs: bool
) -> None:
    choices, _ = call
    stream = ChatStream(choices=len(choices), include_usage=include_usage, logprobs=logprobs)
    frames = chunks(stream, call)
    report = accepted(check_stream(frames))
    assert check_stream(frames, profile="foreign").accepted == (
        finished(choices) or failed(choices)
    )
    assert report.api == "chat"
    assert report.result is not None
    if failed(choices):
        assert report.result["error"]["type"] == "server_error"
        assert report.outcome == "failed"
        return
    body = chat_body(choices, logprobs=logprobs)
    if not include_usage:
        body["usage"] = None
    assert without_empty_logprobs(report.result) == without_empty_logprobs(body)


def test_what_a_request_can_ask_for() -> None:
    """Padding, token ids, and the counts so far on every chunk."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    log = a_response().text("Hi", " there", phase="final_answer").finish().log[:]
    events = list(parse(ResponsesStream().feed(0, log)))
    for name, data in events:
        if name is not None and name.endswith(".delta"):
            data["obfuscation"] = "x9"
    accepted(check_stream(render(events)))
    for stream in (ChatStream(include_usage=True), CompletionsStream(include_usage=True)):
        events = list(parse(stream.feed(0, log)))
        for at, (_, chunk) in enumerate(events[:-2]):
            chunk |= {"usage": usage, "obfuscation": "x9"}
            chunk["choices"][0]["token_ids"] = [3] if at else []
        chat = isinstance(stream, ChatStream)
        (events[0][1] if chat else events[0][1]["choices"][0])["prompt_token_ids"] = [1, 2]
        accepted(check_stream(render(events)))


@pytest.mark.parametrize(
    "echo",
    [{"model": "m"}, {"model": "m", "banana": 1}, {"model": "m", "tools": [], "user": None}],
)
def test_what_a_snapshot_tells_of_the_request_is_the_servers_choice(echo: Any) -> None:
    frames = ResponsesStream().feed(0, a_response(echo=echo).text("Hi").finish().log[:])
    result = accepted(check_stream(frames)).result
    assert result is not None
    assert {key: result[key] for key in echo} == echo


@pytest.mark.parametrize(
    "pieces",
    [
        [Piece("abc", (1,), (Logprob("zzz", -1.0, b"zzz"),))],
        [Piece("ab", (1,), (Logprob("ab", -1.0, b"ab"),)), Piece("c", (2,))],
        [Piece("a<think>x</think>b", (1,), (Logprob("a", -1.0, b"a<think>x</think>b"),))],
    ],
)
def test_logprobs_need_not_spell_the_text(pieces: list[Piece]) -> None:
    """The segmenter hands on what an engine gives, and what it hands on is a legal stream."""
    machine, log = Response(), EventLog()
    segments = Segmenter(FORMATS["think"]).feed(pieces)
    assert any(isinstance(segment, Text) and segment.logprobs for segment in segments)
    for command in (Accept("r1", 5, echo={"model": "m"}), *segments, Finish("stop", Usage(1, 1))):
        log.extend(machine.receive(command))
    accepted(check_stream(ResponsesStream().feed(0, log[:])))


def test_an_error_alone_tells_the_api_where_one_api_alone_begins_so() -> None:
    error = {"message": "No.", "type": "server_error", "param": None, "code": "gone"}
    data = render([(None, {"error": error}), (None, "[DONE]")])
    assert accepted(check_stream(data)).api == "completions"
    foreign = accepted(check_stream(data, profile="foreign"))
    assert (foreign.api, foreign.outcome, foreign.result) == (None, "failed", {"error": error})


@given(calls(), st.booleans(), st.booleans())
def test_completion_chunks_are_accepted_and_fold_to_the_body(
    call: Any, include_usage: bool, logprobs: bool
) -> None:
    choices, _ = call
    stream = CompletionsStream(choices=len(choices), include_usage=include_usage, logprobs=logprobs)
    frames = chunks(stream, call)
    report = accepted(check_stream(frames))
    assert report.api == "completions"
    assert report.result is not None
    if failed(choices):
        assert report.outcome == "failed"
        return
    body = completion_body(choices, logprobs=logprobs)
    if not include_usage:
        body["usage"] = None
    # A choice that was cancelled before its text is in no chunk.
    for key in ("id", "created", "model"):
        body[key] = body[key] if b'"choices"' in frames[0] else None
    if frames == [b"data: [DONE]\n\n"]:
        assert str(report) == "accepted: 1 event, cancelled (no finish reason came)"
    body["choices"] = [each for each in body["choices"] if each["text"] or each["finish_reason"]]
    assert without_empty_logprobs(report.result) == without_empty_logprobs(body)


# --- and what is done to it -------------------------------------------------------------------


def events_of(life: Life) -> Events:
    return list(parse(ResponsesStream().feed(0, life[0][:])))


def renumbered(events: Events) -> Events:
    """As a server that counts its frames would send them: no gap tells of the change."""
    number = itertools.count()
    return [
        (name, data if isinstance(data, str) else {**data, "sequence_number": next(number)})
        for name, data in events
    ]


def reads_as_cancelled(events: Events) -> bool:
    """Without its terminal event the stream is that of a cancelled response, and legal: nothing is
    open, and the last item is incomplete or a call, which can be closed while a response runs."""
    (*_, last) = (data["item"] for name, data in events if name == "response.output_item.done")
    return last["status"] == "incomplete" or "call_id" in last


def never_ran(events: Events) -> bool:
    """Without its ``response.in_progress`` the stream is that of a response that failed or was
    cancelled while it was queued."""
    names = {name for name, _ in events}
    return "response.queued" in names and "response.output_item.added" not in names


@given(st.data(), lives)
def test_a_lost_event_is_noticed(data: st.DataObject, life: Life) -> None:
    events = events_of(life)
    index = data.draw(st.integers(0, len(events) - 1))
    name, _ = events.pop(index)
    if any(isinstance(later, dict) for _, later in events[index:]):
        assert refused(events)  # there is a gap
    legal = (
        name in ("response.completed", "response.incomplete") and reads_as_cancelled(events)
    ) or (name == "response.in_progress" and never_ran(events))
    assert refused(renumbered(events)) != legal


@given(st.data(), lives)
def test_a_doubled_event_is_noticed(data: st.DataObject, life: Life) -> None:
    events = events_of(life)
    index = data.draw(st.integers(0, len(events) - 1))
    events.insert(index, events[index])
    assert refused(events)
    assert refused(renumbered(events))


def spelled(events: Events) -> list[Any]:
    """What the deltas of each part add up to, in order."""
    parts: dict[Any, list[Any]] = {}
    for name, data in events:
        if name is not None and name.endswith(".delta"):
            key = (data["item_id"], data.get("content_index"))
            text, logprobs = parts.setdefault(key, ["", []])
            parts[key] = [text + data["delta"], logprobs + data.get("logprobs", [])]
    return list(parts.items())


@given(st.data(), lives)
def test_two_swapped_events_are_noticed(data: st.DataObject, life: Life) -> None:
    events = events_of(life)
    first, second = sorted(
        data.draw(st.sets(st.integers(0, len(events) - 1), min_size=2, max_size=2))
    )
    swapped = events.copy()
    swapped[first], swapped[second] = swapped[second], swapped[first]
    assert refused(swapped)
    names = {events[first][0], events[second][0]}
    if len(names) == 1 and spelled(swapped) == spelled(events):
        # Two deltas of a part whose sum does not tell which came first: "a" "aa", "aa" "a".
        assume(str(events[first][0]).endswith(".delta"))
        assert not refused(renumbered(swapped))
        return
    assert refused(renumbered(swapped))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    empty = True
    for key, child in children:
        empty = False
        yield from leaves(child, (*path, key))
    if empty:
        yield path


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return value + "x" if isinstance(value, str) else [*value, "x"]


TOLD_ONCE = {"completed_at", "cached_tokens", "cache_write_tokens", "reasoning_tokens"}
"""Facts that a stream tells in one place alone, so that nothing contradicts another value; the type
of an error is one too."""


@given(st.data(), lives)
def test_a_changed_value_is_noticed(data: st.DataObject, life: Life) -> None:
    events = copy.deepcopy(events_of(life))
    index = data.draw(st.integers(0, len(events) - 2))
    path = data.draw(st.sampled_from(list(leaves(events[index][1]))))
    assume(path[-1] not in TOLD_ONCE or events[index][1]["type"] != "response.completed")
    assume(path[-1] not in TOLD_ONCE - {"completed_at"})
    assume(path != ("error", "type"))
    target = events[index][1]
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = other(target[path[-1]])
    assert refused(events)


def is_structural(data: Any) -> bool:
    """A chunk that must be there, and once: not a delta or a finish, without which the stream is
    that of another answer."""
    if data == "[DONE]" or not data.get("choices"):
        return True
    return "role" in data["choices"][0]["delta"]


@given(st.data(), calls(), st.booleans())
def test_a_lost_chunk_is_noticed_where_it_can_be(
    data: st.DataObject, call: Any, include_usage: bool
) -> None:
    frames = chunks(ChatStream(choices=len(call[0]), include_usage=include_usage), call)
    events = list(parse(frames))
    at = [index for index, (_, chunk) in enumerate(events) if is_structural(chunk)]
    index = data.draw(st.sampled_from(at))
    _, lost = events.pop(index)
    if isinstance(lost, dict) and "error" in lost:
        # No error and no usage chunk: a cancelled call, unless usage was asked for.
        assert refused(events) == include_usage
        return
    last_role = not any(len(chunk["choices"]) and chunk["choices"][0]["index"] == len(call[0]) - 1
                        for _, chunk in events[:-1] if "choices" in chunk)  # fmt: skip
    if isinstance(lost, dict) and lost["choices"] and last_role and len(events) > 1:
        # The last choice is in no chunk at all: a call of fewer choices.
        assume(lost["choices"][0]["index"] != len(call[0]) - 1)
    # Told the API: without the only role, ``[DONE]`` alone is a cancelled completions call.
    assert not check_stream(render(events), api="chat").accepted


@given(st.data(), calls(), st.booleans())
def test_a_doubled_chunk_is_noticed_where_it_can_be(
    data: st.DataObject, call: Any, include_usage: bool
) -> None:
    frames = chunks(ChatStream(choices=len(call[0]), include_usage=include_usage), call)
    events = list(parse(frames))
    at = [
        index
        for index, (_, chunk) in enumerate(events)
        if is_structural(chunk) or chunk["choices"][0]["finish_reason"]
    ]
    index = data.draw(st.sampled_from(at))
    events.insert(index, events[index])
    assert refused(events)


@given(st.data(), calls())
def test_a_changed_head_is_noticed(data: st.DataObject, call: Any) -> None:
    events = list(parse(chunks(ChatStream(choices=len(call[0])), call)))
    events = copy.deepcopy(events)
    at = [index for index, (_, chunk) in enumerate(events) if "choices" in chunk]
    assume(len(at) > 1)
    chunk = events[data.draw(st.sampled_from(at))][1]
    key = data.draw(st.sampled_from(["id", "object", "created", "model"]))
    chunk[key] = other(chunk[key])
    assert refused(events)
