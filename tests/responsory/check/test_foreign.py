"""Streams of other servers: what the profile ``foreign`` takes, and what it does not."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.check import PROFILES, check_stream
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.testing import a_response
from responsory.testing.folds import parse

MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hi"}],
}
OPENED = {**MESSAGE, "content": []}


def response(status: str, *output: Any, **more: Any) -> dict[str, Any]:
    return {"response": {"id": "r", "status": status, "output": list(output), **more}}


def stream(*events: Any, done: bool = False, numbered: bool = True) -> bytes:
    """``(type, keys)`` of each event, as a frame."""
    frames = []
    for number, (kind, data) in enumerate(events):
        sequence = {"sequence_number": number} if numbered else {}
        text = json.dumps({"type": kind, **sequence, **data})
        frames.append(f"event: {kind}\ndata: {text}\n\n")
    return "".join(frames).encode() + (b"data: [DONE]\n\n" if done else b"")


def added(index: int, item: Any) -> tuple[str, dict[str, Any]]:
    return "response.output_item.added", {"output_index": index, "item": item}


def done(index: int, item: Any) -> tuple[str, dict[str, Any]]:
    return "response.output_item.done", {"output_index": index, "item": item}


def inside(kind: str, index: int, item_id: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return f"response.{kind}", {"item_id": item_id, "output_index": index, **data}


def part(kind: str, index: int, item_id: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return inside(kind, index, item_id, content_index=0, **data)


def text(index: int = 0, item_id: str = "m") -> list[tuple[str, dict[str, Any]]]:
    empty = {"type": "output_text", "text": ""}
    return [
        part("content_part.added", index, item_id, part=empty),
        part("output_text.delta", index, item_id, delta="H"),
        part("output_text.delta", index, item_id, delta="i"),
        part("output_text.done", index, item_id, text="Hi"),
        part("content_part.done", index, item_id, part={"type": "output_text", "text": "Hi"}),
    ]


CREATED = ("response.created", response("in_progress"))
RUNNING = ("response.in_progress", response("in_progress"))
COMPLETED = ("response.completed", response("completed", MESSAGE))
BODY = [added(0, OPENED), *text(), done(0, MESSAGE)]

SEARCH = {"type": "web_search_call", "id": "s", "status": "in_progress"}
SEARCHED = {**SEARCH, "status": "completed", "action": {"query": "frogs"}}
REASONED = {"type": "reasoning", "id": "t", "summary": [{"type": "summary_text", "text": "Why"}]}
CITATION = {"type": "url_citation", "url": "u"}
CITED = {"type": "output_text", "text": "Hi", "annotations": [CITATION]}
AUDIO = {"type": "output_audio", "transcript": "Hi"}
ERROR = {"code": None, "message": "No.", "param": None}
SECRET = {"type": "reasoning", "id": "t", "summary": [], "encrypted_content": "first"}
SECRET_NEW = {**SECRET, "encrypted_content": "second"}


def summary(kind: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return inside(f"reasoning_summary_{kind}", 0, "t", summary_index=0, **data)


SUMMARY = [
    added(0, {"type": "reasoning", "id": "t", "summary": []}),
    summary("part.added", part={"type": "summary_text", "text": ""}),
    summary("text.delta", delta="Why"),
    summary("text.done", text="Why"),
    summary("part.done", part={"type": "summary_text", "text": "Why"}),
    done(0, REASONED),
]

THOUGHT_DONE = {
    "type": "reasoning", "id": "t", "summary": [],
    "content": [{"type": "reasoning_text", "text": "Why"}],
}  # fmt: skip
THOUGHT = [
    added(0, {"type": "reasoning", "id": "t", "summary": [], "content": None}),
    part("reasoning_part.added", 0, "t", part={"type": "reasoning_text", "text": ""}),
    part("reasoning_text.delta", 0, "t", delta="Why"),
    part("reasoning_text.done", 0, "t", text="Why"),
    part("reasoning_part.done", 0, "t", part={"type": "reasoning_text", "text": "Why"}),
    done(0, THOUGHT_DONE),
]

TAKEN: dict[str, bytes] = {
    "no sequence numbers": stream(CREATED, RUNNING, *BODY, COMPLETED, numbered=False),
    "no in_progress": stream(CREATED, *BODY, COMPLETED),
    "with [DONE]": stream(CREATED, RUNNING, *BODY, COMPLETED, done=True),
    "CRLF": stream(CREATED, RUNNING, *BODY, COMPLETED).replace(b"\n", b"\r\n"),
    "no event lines": b"".join(
        line + b"\n"
        for line in stream(CREATED, *BODY, COMPLETED).split(b"\n")
        if not line.startswith(b"event")
    ),
    "an opaque item": stream(
        CREATED, added(0, SEARCH),
        inside("web_search_call.searching", 0, "s"),
        ("response.web_search_call.completed", {"output_index": 0}),
        done(0, SEARCHED), ("response.completed", response("completed", SEARCHED)),
    ),
    "items side by side": stream(
        CREATED, added(0, SEARCH), added(1, OPENED), *text(1)[:2],
        inside("web_search_call.searching", 0, "s"), done(0, SEARCHED), *text(1)[2:],
        done(1, MESSAGE), ("response.completed", response("completed", SEARCHED, MESSAGE)),
    ),
    "a summary": stream(
        CREATED, *SUMMARY, ("response.completed", response("completed", REASONED))
    ),
    "a summary told whole": stream(
        CREATED, added(0, {**REASONED, "summary": []}), done(0, REASONED),
        ("response.completed", response("completed", REASONED)),
    ),
    "annotations": stream(
        CREATED, added(0, OPENED), *text()[:3],
        part("output_text.annotation.added", 0, "m", annotation_index=0, annotation=CITATION),
        text()[3], part("content_part.done", 0, "m", part=CITED),
        done(0, {**MESSAGE, "content": [CITED]}),
        ("response.completed", response("completed", {**MESSAGE, "content": [CITED]})),
    ),
    "a part of an unknown type": stream(
        CREATED, added(0, OPENED), part("content_part.added", 0, "m", part=AUDIO),
        part("output_audio.delta", 0, "m", delta="…"),
        part("content_part.done", 0, "m", part=AUDIO), done(0, {**MESSAGE, "content": [AUDIO]}),
        ("response.completed", response("completed", {**MESSAGE, "content": [AUDIO]})),
    ),
    "signs of life and extensions": stream(
        CREATED, ("keepalive", {}), BODY[0], ("acme:trace", {"span": 1}), *BODY[1:], COMPLETED
    ),
    "signs of life before the response": stream(
        ("keepalive", {}), ("acme:trace", {"span": 1}), ("codex.rate_limits", {"x": []}),
        CREATED, *BODY, COMPLETED,
    ),
    "another server's own event": stream(
        CREATED, ("rate_limits", {}), BODY[0], ("codex.rate_limits", {}), *BODY[1:], COMPLETED
    ),
    "reasoning as vLLM names its parts": stream(
        CREATED, *THOUGHT, ("response.completed", response("completed", THOUGHT_DONE))
    ),
    "encrypted anew": stream(
        CREATED, added(0, SECRET), done(0, SECRET),
        ("response.completed", response("completed", SECRET_NEW)),
    ),
    "an error alone": stream(CREATED, RUNNING, *BODY[:3], ("error", ERROR)),
    "failed without error": stream(
        CREATED, *BODY[:3], ("response.failed", response("failed", error={"message": "No."}))
    ),
    "incomplete before any item": stream(
        CREATED, ("response.incomplete", response("incomplete", incomplete_details={}))
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[str, bytes]] = {
    "some sequence numbers": (
        "seq-dense",
        stream(CREATED, RUNNING, *BODY, COMPLETED).replace(b'"sequence_number": 4, ', b""),
    ),
    "an event of another item": (
        "ids-stable",
        stream(CREATED, added(0, SEARCH), inside("web_search_call.searching", 0, "x")),
    ),
    "an unknown event in a known item": (
        "event-known", stream(CREATED, *BODY[:3], part("output_text.wiped", 0, "m")),
    ),
    "an unknown event of no item": (
        "event-known", stream(CREATED, ("response.cancelled", response("cancelled"))),
    ),
    "an opaque item that changes its type": (
        "done-equals-streamed", stream(CREATED, added(0, SEARCH), done(0, {**MESSAGE, "id": "s"})),
    ),
    "an opaque item that the end shows otherwise": (
        "final-equals-streamed",
        stream(CREATED, added(0, SEARCH), done(0, SEARCHED),
               ("response.completed", response("completed", SEARCH))),
    ),
    "an opaque item that is never done": (
        "items-paired",
        stream(CREATED, added(0, SEARCH), ("response.completed", response("completed", SEARCHED))),
    ),
    "other annotations": (
        "done-equals-streamed",
        stream(CREATED, added(0, OPENED), *text()[:3],
               part("output_text.annotation.added", 0, "m", annotation_index=0, annotation={}),
               text()[3], part("content_part.done", 0, "m", part=CITED)),
    ),
    "annotations out of order": (
        "index-dense",
        stream(CREATED, added(0, OPENED), *text()[:3],
               part("output_text.annotation.added", 0, "m", annotation_index=1, annotation={})),
    ),
    "a sign of life after the end": (
        "one-terminal", stream(CREATED, *BODY, COMPLETED, ("keepalive", {})),
    ),
    "an item after the error": ("error-last", stream(CREATED, ("error", ERROR), BODY[0])),
    "a message told whole": (
        "done-equals-streamed", stream(CREATED, added(0, OPENED), done(0, MESSAGE)),
    ),
    "cut": ("terminal-due", stream(CREATED, RUNNING, *BODY)),
    "cancelled": ("terminal-due", stream(CREATED, RUNNING, *BODY, done=True)),
    "summary text without a summary, as Ollama sends it": (
        "parts-paired", stream(CREATED, SUMMARY[0], SUMMARY[2]),
    ),
    "an answer before the response": (
        "created-first", stream(("keepalive", {}), BODY[0]),
    ),
    "audio before the response": ("created-first", stream(("response.audio.delta", {}))),
    "signs of life alone": ("created-first", stream(("keepalive", {}))),
    "an event without a type": ("event-known", stream(CREATED, ("", {}))),
    "two items of one id": (
        "item-id-unique", stream(CREATED, added(0, SEARCH), added(1, {**OPENED, "id": "s"})),
    ),
    "an error without a message": ("object-keys", stream(CREATED, ("error", {"code": "x"}))),
    "two summaries at once": ("parts-paired", stream(CREATED, *SUMMARY[:3], SUMMARY[1])),
    "text in reasoning": (
        "parts-paired",
        stream(CREATED, SUMMARY[0],
               part("content_part.added", 0, "t", part={"type": "output_text", "text": ""})),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name: str) -> None:
    report = check_stream(TAKEN[name], profile="foreign")
    assert report.accepted, str(report)
    terminal = json.loads(TAKEN[name].replace(b"\r", b"").split(b"data: ")[-1 - ("DONE" in name)])
    if "response" in terminal:
        assert report.result == terminal["response"]
    assert not check_stream(TAKEN[name]).accepted


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    rule, data = REFUSED[name]
    violation = check_stream(data, profile="foreign").violation
    assert violation is not None
    assert violation.rule == rule, violation


CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(*choices: Any, **more: Any) -> bytes:
    return f"data: {json.dumps({**CHUNK, 'choices': list(choices), **more})}\n\n".encode()


def choice(finish: str | None = None, index: int = 0, **delta: Any) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CALLED = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}


def note(*choices: Any, **more: Any) -> bytes:
    """A chunk without a head."""
    empty = {"id": "", "object": "", "created": 0, "model": ""}
    return chunk(*choices, **empty, **more)


def filtered(finish: str | None = None) -> dict[str, Any]:
    offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 2}
    return {"index": 0, "finish_reason": finish, "content_filter_offsets": offsets}


@pytest.mark.parametrize(
    "data",
    [
        # The role beside the first content, the finish beside the last; no [DONE].
        chunk(choice(role="assistant", content="H")) + chunk(choice("stop", content="i")),
        # The role beside a call, a call that ends in "stop", as forced calls do.
        chunk(choice(role="assistant", content=None, tool_calls=[CALLED])) + chunk(choice("stop")),
        # A chunk about the prompt; usage on the last chunk of the choice.
        chunk(prompt_filter_results=[]) + chunk(choice("stop", role="assistant"), usage=USAGE),
        # Usage on every chunk, and once more at the end.
        chunk(choice("stop", role="assistant"), usage=USAGE) + chunk(usage=USAGE),
        # Two choices in one chunk; keys without meaning here.
        chunk(choice(role="assistant", x=1), choice(role="assistant", index=1), x=1)
        + chunk(choice("stop"), choice("length", index=1)),
        # Two calls side by side, with empty ids in later fragments.
        chunk(choice(role="assistant", tool_calls=[CALLED, {**CALLED, "index": 1, "id": "b"}]))
        + chunk(choice(tool_calls=[{"index": 0, "id": "", "function": {"arguments": "{}"}}]))
        + chunk(choice(tool_calls=[{"index": 1, "type": "function", "function": {}}]))
        + chunk(choice("tool_calls")),
        # Ollama: the role in every delta.
        chunk(choice(role="assistant", content="H"))
        + chunk(choice("stop", role="assistant", content="i")),
        # Empty for none: SGLang's finish reason, roles and types of others.
        chunk(choice("", role="assistant", tool_calls=[CALLED]))
        + chunk(choice("", role="", tool_calls=[{"index": 0, "type": "", "function": {}}]))
        + chunk(choice("stop")),
        # Choices that begin in another order.
        chunk(choice(role="assistant", index=1))
        + chunk(choice(role="assistant"))
        + chunk(choice("stop", index=1))
        + chunk(choice("stop")),
        # Azure OpenAI: notes of the content filter.
        note(prompt_filter_results=[])
        + chunk(choice(role="assistant", content="Hi"))
        + note(filtered())
        + chunk(choice("stop"))
        + note(filtered()),
        # One of them ends the answer.
        chunk(choice(role="assistant", content="Hi")) + note(filtered("content_filter")),
        # An error is all there is.
        b'data: {"error": {"message": "No.", "code": 500, "type": null}}\n\n',
        b'event: error\ndata: {"error": {"message": "No."}}\n\n',
        chunk(choice(role="assistant")) + b'event: error\ndata: {"error": {"message": "No."}}\n\n',
    ],
)
def test_chunks_that_others_send(data: bytes) -> None:
    for end in (b"", b"data: [DONE]\n\n"):
        reports = [check_stream(data + end, profile="foreign", api=api) for api in ("chat", None)]
        for report in reports:
            assert report.accepted, str(report)
        assert reports[0].result == reports[1].result
        assert not check_stream(data + end, api="chat").accepted


@pytest.mark.parametrize(
    ("rule", "data"),
    [
        ("finish-once", chunk(choice("stop", role="assistant")) + note(filtered("length"))),
        ("finish-due", chunk(choice(role="assistant")) + note(filtered())),
        ("object-keys", chunk(choice(role="assistant")) + note(5)),
        ("object-keys", chunk(choice(role="assistant")) + note(choice(content="Hi"))),
        ("first-event", note(prompt_filter_results=[])),
        ("first-event", note(choice(content="Hi"))),
        ("finish-due", chunk(choice("stop", index=1, role="assistant"))),
        ("call-id-unique",
         chunk(choice(role="assistant", tool_calls=[CALLED, {**CALLED, "index": 1}]))),
        ("error-last", b'data: {"error": {"message": "No."}}\n\n' + chunk()),
        ("object-keys", b'data: {"error": "No."}\n\n'),
    ],
)  # fmt: skip
def test_chunks_that_nobody_may_send(rule: str, data: bytes) -> None:
    violation = check_stream(data, profile="foreign").violation
    assert violation is not None
    assert violation.rule == rule, violation


def test_a_filters_finish_reason_is_the_answers() -> None:
    data = chunk(choice(role="assistant", content="Hi")) + note(filtered("content_filter"))
    report = check_stream(data, profile="foreign")
    assert report.outcome == "content_filter"
    assert report.result is not None
    assert report.result["choices"][0]["message"]["content"] == "Hi"


def test_nothing_in_a_stream_steers_the_terminal() -> None:
    evil = "\x1b[2J\n\u2028" + "x" * 10_000
    reports = [
        check_stream(chunk(choice(evil[:9], role="assistant")), profile="foreign"),
        check_stream(
            stream(CREATED, added(0, {**SEARCH, "type": evil}), *text(0, "s")), profile="foreign"
        ),
        check_stream(stream(CREATED, (f"response.{evil}", {})), profile="foreign"),
        check_stream(
            stream(CREATED, added(0, OPENED), done(0, {**MESSAGE, evil: 1})), profile="foreign"
        ),
        check_stream(f"data: {json.dumps({evil: 1, **CHUNK})}\n\n".encode()),
        check_stream(evil.encode()),
        check_stream(f"event: {evil[:5]}\n\n".encode()),
    ]
    assert [report.accepted for report in reports] == [True] + [False] * 6
    for report in reports:
        assert all(line.isprintable() for line in str(report).split("\n"))
        assert len(str(report)) < 1000


def test_a_far_index_takes_no_time() -> None:
    far = {"index": 10**12, "text": "x", "finish_reason": "stop", "logprobs": None}
    data = chunk({**far, "stop_reason": None}).replace(b"chat.completion.chunk", b"text_completion")
    data = data.replace(b'"c"', b'"cmpl-c"').replace(b": ", b":").replace(b", ", b",")
    data = data.replace(b"data:", b"data: ") + b"data: [DONE]\n\n"
    assert check_stream(data).accepted
    violation = check_stream(data, profile="foreign").violation
    assert violation is not None
    assert violation.rule == "finish-due"


def rendered(frames: list[bytes]) -> list[tuple[str | None, Any]]:
    return list(parse(frames))


LOG = a_response().reasoning("2").text("4").refusal("no").call("f", "{}").finish().log[:]
BASES = [
    rendered(ResponsesStream().feed(0, LOG)),
    rendered(ResponsesStream().feed(0, a_response().text("4").fail().log[:])),
    rendered(ChatStream(include_usage=True, logprobs=True).feed(0, LOG)),
    rendered(CompletionsStream(logprobs=True).feed(0, LOG)),
]
WORDS = ("", "x", "message", "output_text", "function", "response.completed", "stop")
KEYS = st.sampled_from(("type", "id", "index", "text", "error", "x"))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(WORDS),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.data(), st.sampled_from(list(PROFILES)))
def test_no_value_of_any_kind_is_too_much(data: st.DataObject, profile: Any) -> None:
    """A report, whatever stands in the place of whatever."""
    base = data.draw(st.sampled_from(BASES))
    events = copy.deepcopy(base)
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from(events[:-1]))[1]
        while True:
            keys: Any = list(target) if isinstance(target, dict) else range(len(target))
            key = data.draw(st.sampled_from(keys))
            inner = target[key]
            if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 3)):
                target = inner
            else:
                break
        target[key] = data.draw(VALUES)
    lines = itertools.chain.from_iterable(
        ([f"event: {name}"] if name else [])
        + [f"data: {body if isinstance(body, str) else json.dumps(body)}", ""]
        for name, body in events
    )
    report = check_stream("\n".join([*lines, ""]).encode(), profile=profile)
    assert json.loads(json.dumps(report.as_json()))["accepted"] == report.accepted
    assert str(report).startswith("accepted" if report.accepted else "refused")
