"""What a violation says could have come: the event that did come is in it, and nothing that is not
in it would have been taken."""

from __future__ import annotations

import copy
import json
from typing import Any, TypeAlias

import pytest

from responsory.check import StreamChecker, Violation, check_stream
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.testing import a_response
from responsory.testing.folds import parse

Events: TypeAlias = list[tuple[str | None, Any]]


def responses(builder: Any) -> Events:
    return list(parse(ResponsesStream().feed(0, builder.log[:])))


STREAMS: dict[str, Events] = {
    "text": responses(a_response().text("Hi", " there").finish()),
    "refusal": responses(a_response().text("Hi").refusal("No").finish("length")),
    "reasoning": responses(a_response().reasoning("2+2").text("4").finish()),
    "calls": responses(a_response().call("f", "{}").call("g", "{}", kind="custom").finish()),
    "call-length": responses(a_response().call("f", "{}").finish("length")),
    "failed": responses(a_response().text("Hi").fail()),
    "failed-queued": responses(a_response(background=True).fail()),
    "queued": responses(a_response(background=True).start().text("Hi").finish()),
    "cancelled": responses(a_response(background=True).start().text("Hi").cancel()),
    "cancelled-queued": responses(a_response(background=True).cancel()),
}


def frame(name: str | None, data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def after(events: Events, profile: Any) -> StreamChecker:
    checker = StreamChecker(profile=profile, api="responses")
    for event in events:
        checker.feed(frame(*event))
    assert checker.violation is None
    return checker


def legal(events: Events, profile: Any) -> tuple[str, ...]:
    checker = after(events, profile)
    checker.feed(b"data: 0\n\n")
    assert isinstance(checker.violation, Violation)
    return checker.violation.legal


def name_of(event: tuple[str | None, Any]) -> str:
    name, data = event
    return name or str(data)


TEMPLATES: dict[str, tuple[str | None, Any]] = {
    name_of(event): event for events in STREAMS.values() for event in events
}


@pytest.mark.parametrize("profile", ["openai", "foreign"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_next_event_is_among_the_legal_ones(name: str, profile: str) -> None:
    events = STREAMS[name]
    cancelled = profile == "foreign" and "cancelled" in name
    for count, event in enumerate(events):
        if event[0] is not None or not cancelled:
            assert name_of(event) in legal(events[:count], profile)
    if not cancelled:
        assert legal(events, profile) == ("end of the stream",)


@pytest.mark.parametrize("profile", ["openai", "foreign"])
@pytest.mark.parametrize("name", STREAMS)
def test_no_other_event_is_taken(name: str, profile: str) -> None:
    events = STREAMS[name]
    end = len(events) - (profile == "foreign" and "cancelled" in name)
    refused = 0
    for count in range(end):
        allowed = legal(events[:count], profile)
        number = count
        for other, (event_name, template) in TEMPLATES.items():
            if other in allowed:
                continue
            data = copy.deepcopy(template)
            if isinstance(data, dict):
                data["sequence_number"] = number
            checker = after(events[:count], profile)
            checker.feed(frame(event_name, data))
            assert checker.violation is not None, (other, allowed)
            assert checker.violation.legal == allowed
            refused += 1
        checker = after(events[:count], profile)
        assert checker.close().accepted == ("end of the stream" in allowed)
    assert refused > 10


@pytest.mark.parametrize(
    ("stream", "count", "expected"),
    [
        (ChatStream(), 0, "role of choice 0"),
        (ChatStream(), 1,
         "role of choice 1, delta of choice 0, finish of choice 0, [DONE], error chunk"),
        (ChatStream(), 2, "delta of choice 0, finish of choice 0, [DONE], error chunk"),
        (ChatStream(), 3, "[DONE], error chunk"),
        (ChatStream(include_usage=True), 3, "usage chunk, error chunk"),
        (ChatStream(include_usage=True), 4, "[DONE]"),
        (CompletionsStream(), 0, "first text of a choice, usage chunk, [DONE], error chunk"),
        (CompletionsStream(), 1, "first text of a choice, [DONE], error chunk"),
        (CompletionsStream(include_usage=True), 1,
         "first text of a choice, usage chunk, error chunk"),
    ],
)  # fmt: skip
def test_what_chunks_could_follow(stream: Any, count: int, expected: str) -> None:
    frames = stream.feed(0, a_response().text("Hi").finish().log[:])
    api: Any = "chat" if isinstance(stream, ChatStream) else "completions"
    violation = check_stream([*frames[:count], b"data: 0\n\n"], api=api).violation
    assert violation is not None
    assert violation.event == count + 1
    assert ", ".join(violation.legal) == expected


@pytest.mark.parametrize(
    ("profile", "more"), [("openai", ("[DONE]",)), ("foreign", ("keepalive",))]
)
def test_what_could_begin_a_stream(profile: Any, more: tuple[str, ...]) -> None:
    violation = check_stream(b"data: 0\n\n", profile=profile).violation
    assert violation is not None
    first = ("response.created", "chat.completion.chunk", "text_completion", "error chunk")
    assert violation.legal == (*first, *more)
    error = {"message": "No.", "type": "server_error", "param": None, "code": "gone"}
    assert check_stream(frame(None, {"error": error}) + DONE, profile=profile).accepted
    assert check_stream(DONE, profile=profile).accepted == ("[DONE]" in more)
    beat = frame(None, {"type": "keepalive"})
    created = frame("response.created", {"type": "response.created", "response": RESPONSE})
    violation = check_stream(beat + created, profile=profile, api=None).violation
    assert violation is not None
    assert violation.rule == ("terminal-due" if "keepalive" in more else "event-line")


DONE = frame(None, "[DONE]")
RESPONSE = {"id": "r", "output": []}


def test_a_chat_of_any_order_may_begin_any_choice() -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 4, "delta": {"role": "assistant"}, "finish_reason": None}
    data = frame(None, {**chunk, "choices": [choice]})
    violation = check_stream(data + b"data: 0\n\n", profile="foreign").violation
    assert violation is not None
    assert violation.legal[0] == "role of another choice"
