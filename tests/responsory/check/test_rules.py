"""Every rule has a stream that breaks it and breaks it first; the stream before the change is
accepted, and a profile that leaves the rule out does not complain of it."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import responsory.check
from responsory.check import PROFILES, RULES, check_stream
from responsory.check.sse import MAX_SIZE
from responsory.commands import Text
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.testing import a_response
from responsory.testing.folds import parse
from responsory.values import JSON, Logprob, Tokens

Events: TypeAlias = list[tuple[str | None, Any]]
Change: TypeAlias = Callable[[Events], Any]

DONE = (None, "[DONE]")


# --- streams to break -------------------------------------------------------------------------


def responses(builder: Any) -> Events:
    return list(parse(ResponsesStream().feed(0, builder.log[:])))


def chunks(stream: Any, *builders: Any) -> Events:
    return list(parse(frame for index, builder in enumerate(builders)
                      for frame in stream.feed(index, builder.log[:])))  # fmt: skip


ENTRY = Logprob("Hi", -0.25, b"Hi")
ECHO: dict[str, JSON] = {"model": "tiny", "background": False}
TEXT = responses(a_response(echo=ECHO).text("Hi", " there").finish())
LOGPROBS = responses(a_response().tokens(ENTRY, ENTRY).finish())
REFUSAL = responses(a_response().text("Hi").refusal("No").finish())
REASONING = responses(a_response().reasoning("2+2", " is 4").text("4").finish())
ENCRYPTED = list(
    parse(
        ResponsesStream(seal=lambda text: f"<{text}>").feed(
            0, a_response().reasoning("2+2", " is 4").text("4").finish().log[:]
        )
    )
)
CALLS = responses(a_response().call("f", "{", "}").call("g", "{}").finish())
CALL = responses(a_response().call("f", "{}").finish())
LENGTH = responses(a_response().text("Hi").finish("length"))
FAILED = responses(a_response().text("Hi").fail())
QUEUED = responses(a_response(background=True).start().text("Hi").finish())
CANCELLED = responses(a_response(background=True).start().text("Hi").cancel())

TWO = (a_response().reasoning("2+2").text("4").finish(), a_response().call("f", "{}").finish())
CHAT = chunks(ChatStream(choices=2, include_usage=True), *TWO)
CHAT_CALLS = chunks(ChatStream(), a_response().call("f", "{", "}").call("g", "{}").finish())
CHAT_TEXT = chunks(ChatStream(), a_response().text("Hi", " there").finish())
CHAT_LOGPROBS = chunks(ChatStream(logprobs=True), a_response().tokens(ENTRY, ENTRY).finish())
CHAT_FAILED = chunks(ChatStream(), a_response().text("Hi").fail())
CHARACTERS: Any = "x".__mul__
ASKED: dict[str, Any] = {
    "include_usage": True, "continuous_usage": [11], "token_ids": True, "obfuscation": CHARACTERS
}  # fmt: skip
PROMPT: dict[str, JSON] = {"model": "tiny", "prompt_token_ids": [5, 6]}
COUNTED = (
    a_response(echo=PROMPT)
    .send(Text("Hi", (), None, Tokens((1,), 1)))
    .send(Text(" there", (), None, Tokens((2, 3), 3)))
    .finish(ids=(4,))
)
CHAT_ASKED = chunks(ChatStream(**ASKED), COUNTED)
COMPLETION_ASKED = chunks(CompletionsStream(**ASKED), COUNTED)
CHAT_BOTH = chunks(ChatStream(reasoning_field="both"), *TWO[:1])
PADDED = list(
    parse(
        ResponsesStream(obfuscation=CHARACTERS).feed(
            0, a_response().reasoning("2+2").refusal("No").call("f", "{}").finish().log[:]
        )
    )
)
ECHOED = chunks(
    CompletionsStream(logprobs=True),
    a_response()
    .send(Text("Hi", (Logprob("", None, b""), ENTRY)))
    .tokens(ENTRY)
    .finish(),
)  # fmt: skip
COMPLETION = chunks(
    CompletionsStream(include_usage=True), a_response().text("Hi", " there").finish()
)
COMPLETION_LOGPROBS = chunks(
    CompletionsStream(logprobs=True), a_response().tokens(ENTRY, ENTRY).finish()
)


# --- changes ----------------------------------------------------------------------------------


def render(events: Sequence[tuple[str | None, Any]]) -> bytes:
    frames = []
    for name, data in events:
        text = data
        if not isinstance(data, str):
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        frames.append(f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n")
    return "".join(frames).encode()


def place(events: Events, at: int | str, nth: int = 0) -> int:
    """A number, or the ``nth`` event of a type (without ``response.``)."""
    if isinstance(at, int):
        return range(len(events))[at]
    names = (at, f"response.{at}")
    return [index for index, (name, _) in enumerate(events) if name in names][nth]


def put(at: int | str, path: str, value: Any, nth: int = 0) -> Change:
    """Set what lies at a dotted path in an event's data; ``...`` deletes it."""

    def change(events: Events) -> None:
        target = events[place(events, at, nth)][1]
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in way:
            target = target[step]
        if value is ...:
            del target[last]
        else:
            target[last] = value

    return change


def drop(at: int | str, nth: int = 0) -> Change:
    return lambda events: events.pop(place(events, at, nth))


def double(at: int | str, nth: int = 0) -> Change:
    def change(events: Events) -> None:
        index = place(events, at, nth)
        events.insert(index, copy.deepcopy(events[index]))

    return change


def move(at: int | str, to: int | str, nth: int = 0, to_nth: int = 0) -> Change:
    """Take an event out and put it before another."""

    def change(events: Events) -> None:
        event = events.pop(place(events, at, nth))
        events.insert(place(events, to, to_nth), event)

    return change


def insert(at: int | str, name: str | None, data: Any, nth: int = 0) -> Change:
    return lambda events: events.insert(place(events, at, nth), (name, copy.deepcopy(data)))


def everywhere(old: str, new: str) -> Change:
    """The same change in every event."""

    def change(events: Events) -> None:
        events[:] = [
            (
                name,
                data if isinstance(data, str) else json.loads(json.dumps(data).replace(old, new)),
            )
            for name, data in events
        ]

    return change


def double_choice(events: Events) -> None:
    """The first chunk's choice, twice in it."""
    choices = events[0][1]["choices"]
    choices += copy.deepcopy(choices)


def after(count: int) -> Change:
    """Only the first ``count`` events."""
    return lambda events: events.__setitem__(slice(count, None), [])


def rename(at: str, name: str) -> Change:
    """Another type of an event."""

    def change(events: Events) -> None:
        index = place(events, at)
        data = events[index][1]
        events[index] = (f"response.{name}", {**data, "type": f"response.{name}"})

    return change


def then(*changes: Change) -> Change:
    def change(events: Events) -> None:
        for each in changes:
            each(events)

    return change


def renumber(events: Events) -> None:
    """Sequence numbers as if nothing had happened: other rules are to speak."""
    number = 0
    for _, data in events:
        if isinstance(data, dict) and "sequence_number" in data:
            data["sequence_number"] = number
            number += 1


def raw(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """A change of the bytes."""

    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new, 1)

    return change


DELTA = "output_text.delta"
ARGUMENTS = "function_call_arguments.delta"
USAGE = CHAT[-2][1]["usage"]
TEXT_USAGE = TEXT[9][1]["response"]["usage"]
PING = {"type": "keepalive", "sequence_number": 0}
NOTE = (None, {"id": "", "object": "", "created": 0, "model": "", "choices": []})
ERROR_EVENT = {"type": "error", "sequence_number": 0}
FOREIGN_ITEM = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}

# (rule, profile, stream, change of its events)
BREAKS: list[tuple[str, str, Events, Change]] = [
    ("json-object", "foreign", TEXT, insert(2, "x", "[1]")),
    ("json-object", "foreign", TEXT, insert(2, None, '{"type":"keepalive"')),
    ("json-object", "foreign", TEXT, insert(2, None, '{"x":NaN}')),
    ("json-object", "foreign", TEXT, insert(2, None, "")),
    ("json-object", "foreign", CHAT, insert(2, None, "[done]")),
    ("i-json", "foreign", TEXT, insert(2, None, '{"x":1,"x":1}')),
    ("i-json", "foreign", TEXT, insert(2, None, '{"x":"\\ud83d"}')),
    ("i-json", "foreign", TEXT, insert(2, None, '{"x":1e999}')),
    ("i-json", "foreign", TEXT, insert(2, None, '{"x":' + "9" * 5000 + "}")),
    ("i-json", "foreign", TEXT, insert(2, None, '{"x":' + "[" * 100_000 + "]" * 100_000 + "}")),
    ("first-event", "foreign", TEXT, insert(0, None, {"hello": 1})),
    ("first-event", "foreign", TEXT, insert(0, None, "[DONE]")),
    ("first-event", "foreign", CHAT, lambda events: events.__setitem__(slice(None), [NOTE])),
    ("object-keys", "foreign", TEXT, put(DELTA, "delta", ...)),
    ("object-keys", "foreign", TEXT, put(DELTA, "output_index", True)),
    ("object-keys", "foreign", TEXT, put(DELTA, "output_index", -1)),
    ("object-keys", "foreign", TEXT, put("created", "response", [])),
    ("object-keys", "foreign", TEXT, put(DELTA, "type", 5)),
    ("object-keys", "foreign", TEXT, put("output_item.added", "item.role", "user")),
    ("object-keys", "foreign", TEXT, put("created", "response.output", [None])),
    ("object-keys", "foreign", TEXT, put("in_progress", "response.output", [{"junk": 1}])),
    ("object-keys", "foreign", FAILED, put("failed", "response.output", [{"junk": 1}])),
    ("object-keys", "foreign", FAILED, put("failed", "response.output", [5])),
    ("object-keys", "foreign", FAILED, put("failed", "response.output.0.content", None)),
    ("object-keys", "foreign", TEXT, insert(2, "error", ERROR_EVENT)),
    ("object-keys", "foreign", TEXT, insert(2, "error", {**ERROR_EVENT, "error": {"code": "x"}})),
    ("object-keys", "foreign", CHAT, put(2, "choices.0.delta", None)),
    ("object-keys", "foreign", CHAT_TEXT, put(0, "choices.0.delta.role", "user")),
    ("object-keys", "foreign", CHAT, put(2, "choices.0", "x")),
    ("object-keys", "foreign", COMPLETION, put(1, "choices.0.text", None)),
    ("ids-stable", "foreign", TEXT, put(DELTA, "item_id", "msg_r1_9")),
    ("ids-stable", "foreign", TEXT, put("completed", "response.id", "resp_r2")),
    ("ids-stable", "foreign", TEXT, put("output_item.done", "item.id", "msg_other")),
    ("ids-stable", "foreign", CHAT, put(2, "id", "chatcmpl-other")),
    ("index-dense", "foreign", TEXT, put("output_item.added", "output_index", 1)),
    ("index-dense", "foreign", TEXT, put("content_part.added", "content_index", 1)),
    ("index-dense", "foreign", TEXT, put(DELTA, "content_index", 1)),
    ("index-dense", "foreign", REFUSAL, put("content_part.added", "content_index", 0, 1)),
    ("index-dense", "foreign", CHAT_CALLS, put(1, "choices.0.delta.tool_calls.0.index", 1)),
    ("usage-sums", "foreign", TEXT, put("completed", "response.usage.total_tokens", 99)),
    ("usage-sums", "foreign", CHAT, put(-2, "usage.prompt_tokens", 99)),
    ("error-last", "foreign", FAILED, insert("failed", "error", FAILED[8][1])),
    ("error-last", "foreign", CHAT_FAILED, insert(-1, None, CHAT_FAILED[1][1])),
    ("error-last", "openai", CHAT_FAILED, double(-2)),
    ("done-last", "foreign", TEXT, double(-1)),
    ("done-last", "foreign", CHAT, lambda events: events.append(events[2])),
    ("compact-json", "openai", TEXT, insert(2, "x", '{"x": 1}')),
    ("compact-json", "openai", TEXT, insert(2, "x", '{"x":"\\u00e9"}')),
    ("event-line", "openai", TEXT, lambda events: events.__setitem__(4, (None, events[4][1]))),
    ("event-line", "openai", CHAT, lambda events: events.__setitem__(4, ("x", events[4][1]))),
    ("event-line", "openai", CHAT, lambda events: events.__setitem__(-1, ("x", "[DONE]"))),
    ("exact-keys", "openai", TEXT, put(DELTA, "extra", 1)),
    ("exact-keys", "openai", TEXT, put(DELTA, "logprobs", ...)),
    ("exact-keys", "openai", TEXT, put("output_item.added", "item.extra", 1)),
    ("exact-keys", "openai", TEXT, put("completed", "response.usage.extra", 1)),
    ("exact-keys", "openai", TEXT, everywhere('"model"', '"models"')),
    ("exact-keys", "openai", LOGPROBS, put(DELTA, "logprobs.0.extra", 1)),
    ("exact-keys", "openai", CHAT, put(2, "system_fingerprint", "x")),
    ("exact-keys", "openai", CHAT_FAILED, put(-2, "error.extra", 1)),
    ("exact-keys", "openai", CHAT_FAILED, put(-2, "error.param", ...)),
    ("exact-keys", "openai", CHAT_FAILED, put(-2, "error.code", ...)),
    ("exact-keys", "openai", CHAT_FAILED, put(-2, "error.code", 500)),
    ("exact-keys", "openai", CHAT_FAILED, put(-2, "extra", 1)),
    ("exact-keys", "openai", CHAT_TEXT, put(0, "choices.0.stop_reason", None)),
    ("exact-keys", "openai", CHAT_TEXT, put(-2, "choices.0.stop_reason", True)),
    ("exact-keys", "openai", CHAT_TEXT, put(-2, "choices.0.stop_reason", {})),
    ("exact-keys", "openai", CHAT_TEXT, put(1, "choices.0.token_ids", ["x"])),
    ("exact-keys", "openai", CHAT_TEXT, put(0, "prompt_token_ids", [-1])),
    ("exact-keys", "openai", CHAT_TEXT, put(0, "created", -1)),
    ("exact-keys", "openai", CHAT_TEXT, put(0, "choices.0.delta.role", "")),
    ("exact-keys", "openai", CHAT_TEXT, put(1, "choices.0.delta.tool_calls", [])),
    ("exact-keys", "openai", CHAT_TEXT, put(1, "choices.0.delta.refusal", None)),
    ("exact-keys", "openai", CHAT, put(2, "choices.0.delta.content", None)),
    ("reasoning-names", "openai", CHAT, put(2, "choices.0.delta.reasoning", "other")),
    ("exact-keys", "openai", CHAT_CALLS, put(1, "choices.0.delta.tool_calls.0.type", "")),
    ("exact-keys", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs.content.0.bytes", [-5])),
    ("exact-keys", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs.content.0.bytes", [None])),
    ("exact-keys", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs.refusal", ...)),
    ("exact-keys", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs.refusal", [])),
    ("exact-keys", "openai", COMPLETION_LOGPROBS, put(0, "choices.0.logprobs.tokens", [None])),
    ("exact-keys", "openai", COMPLETION_LOGPROBS,
     put(0, "choices.0.logprobs.token_logprobs", ["x"])),
    ("exact-keys", "openai", COMPLETION_LOGPROBS,
     put(0, "choices.0.logprobs.top_logprobs", [{"Hi": None}])),
    ("exact-keys", "openai", TEXT, put("created", "response.created_at", -1)),
    ("exact-keys", "openai", CHAT, put(2, "choices.0.delta.reasoning_content", ...)),
    ("exact-keys", "openai", CHAT_TEXT, put(-2, "choices.0.stop_reason", ...)),
    ("exact-keys", "openai", CHAT_TEXT, put(1, "choices.0.stop_reason", None)),
    ("exact-keys", "openai", CHAT_CALLS, put(2, "choices.0.delta.tool_calls.0.id", None)),
    ("exact-keys", "openai", CHAT_CALLS, put(1, "choices.0.delta.tool_calls.0.type", ...)),
    ("exact-keys", "openai", COMPLETION, put(1, "choices.0.logprobs", ...)),
    ("ids-derived", "openai", TEXT, everywhere("msg_r1_0", "msg_x_0")),
    ("ids-derived", "openai", TEXT, everywhere("resp_r1", "r1")),
    ("ids-derived", "openai", CHAT_TEXT, everywhere("chatcmpl-r1", "chatcmpl-")),
    ("ids-derived", "openai", COMPLETION, everywhere("cmpl-r1", "cmpl-")),
    ("ids-derived", "openai", TEXT, put("created", "response.id", "resp_")),
    ("ids-derived", "openai", CHAT, everywhere("chatcmpl-r1", "chatcmpl_r1")),
    ("ids-derived", "openai", COMPLETION, everywhere("cmpl-r1", "r1")),
    ("no-empty-delta", "openai", TEXT, then(double(DELTA), put(DELTA, "delta", ""))),
    ("no-empty-delta", "openai", CALL,
     then(double(ARGUMENTS), put(ARGUMENTS, "delta", ""))),
    ("no-empty-delta", "openai", CHAT_TEXT, then(double(1), put(1, "choices.0.delta.content", ""))),
    ("no-empty-delta", "openai", CHAT_CALLS,
     then(double(2), put(2, "choices.0.delta.tool_calls.0.function.arguments", ""))),
    ("no-empty-delta", "openai", COMPLETION, then(double(0), put(0, "choices.0.text", ""))),
    ("done-due", "openai", TEXT, drop(-1)),
    ("done-due", "openai", CHAT, drop(-1)),
    ("event-name", "foreign", TEXT, put(DELTA, "type", "response.output_text.done")),
    ("event-known", "foreign", TEXT, insert(4, "response.x", {"type": "response.x"})),
    ("own-events", "openai", TEXT, insert(4, "keep", {"type": "keep"})),
    ("seq-dense", "foreign", TEXT, put(DELTA, "sequence_number", 9)),
    ("seq-dense", "foreign", TEXT, put(DELTA, "sequence_number", ...)),
    ("seq-dense", "foreign", TEXT, put("created", "sequence_number", ...)),
    ("created-first", "foreign", TEXT, drop(0)),
    ("created-first", "foreign", TEXT, double(0)),
    ("created-first", "foreign", QUEUED, move(0, 2)),
    ("status-order", "foreign", TEXT, double("in_progress")),
    ("status-order", "foreign", QUEUED, double("queued")),
    ("status-order", "foreign", QUEUED, move("queued", "output_item.added")),
    ("status-order", "foreign", TEXT, move("in_progress", DELTA)),
    ("status-of-event", "foreign", TEXT, put("completed", "response.status", "incomplete")),
    ("status-of-event", "foreign", TEXT, put("created", "response.status", "completed")),
    ("items-paired", "foreign", TEXT, drop("output_item.done")),
    ("items-paired", "foreign", TEXT, drop("output_item.added")),
    ("items-paired", "foreign", TEXT, insert("completed", *TEXT[4])),
    ("items-paired", "foreign", TEXT, double("output_item.done")),
    ("items-paired", "foreign", CALLS, put("output_item.done", "output_index", 1)),
    ("parts-paired", "foreign", TEXT, drop("content_part.added")),
    ("parts-paired", "foreign", TEXT, drop("content_part.done")),
    ("parts-paired", "foreign", TEXT, drop("output_text.done")),
    ("parts-paired", "foreign", TEXT, move("content_part.done", "output_text.done")),
    ("parts-paired", "foreign", TEXT, double("output_text.done")),
    ("parts-paired", "foreign", TEXT, double("content_part.added")),
    ("parts-paired", "openai", REASONING, double("content_part.added")),
    ("parts-paired", "foreign", REASONING, rename("content_part.done", "reasoning_part.done")),
    ("parts-paired", "foreign", TEXT, rename("content_part.added", "reasoning_part.added")),
    ("parts-paired", "foreign", TEXT, rename("content_part.done", "reasoning_part.done")),
    ("parts-paired", "foreign", CALL, drop("function_call_arguments.done")),
    ("parts-paired", "foreign", CALL, double("function_call_arguments.done")),
    ("parts-paired", "foreign", REASONING, put("content_part.added", "part.type", "summary_text")),
    ("call-id-stable", "foreign", CALL, put("output_item.done", "item.call_id", "call_x")),
    ("call-id-stable", "foreign", CALL, put("output_item.done", "item.name", "g")),
    ("call-id-stable", "foreign", CALL, put("function_call_arguments.done", "name", "g")),
    ("call-id-unique", "foreign", CALLS, everywhere("call_r1_1", "call_r1_0")),
    ("call-id-unique", "foreign", CHAT_CALLS, everywhere("call_r1_0_1", "call_r1_0_0")),
    ("item-id-unique", "foreign", CALLS, everywhere("fc_r1_1", "fc_r1_0")),
    ("item-id-unique", "foreign", REASONING, everywhere("msg_r1_1", "rs_r1_0")),
    ("deltas-sum", "foreign", TEXT, put("output_text.done", "text", "Hi  there")),
    ("deltas-sum", "foreign", TEXT, drop(DELTA)),
    ("deltas-sum", "foreign", TEXT, double(DELTA)),
    ("deltas-sum", "foreign", REASONING, put("reasoning_text.delta", "delta", "3")),
    ("deltas-sum", "foreign", CALL, put("function_call_arguments.done", "arguments", "{ }")),
    ("done-equals-streamed", "foreign", TEXT, put("content_part.done", "part.text", "Hi")),
    ("done-equals-streamed", "foreign", TEXT, put("output_item.done", "item.content.0.text", "Hi")),
    ("done-equals-streamed", "foreign", TEXT, put("output_item.done", "item.content", [])),
    ("done-equals-streamed", "foreign", CALL, put("output_item.done", "item.arguments", "")),
    ("final-equals-streamed", "foreign", TEXT, put("completed", "response.output", [])),
    ("final-equals-streamed", "foreign", TEXT, put("completed", "response.output.0.id", "x")),
    ("final-equals-streamed", "foreign", CALL, put("completed", "response.output.0", "x")),
    ("final-equals-streamed", "foreign", LENGTH,
     put("incomplete", "response.output.0.status", "completed")),
    ("item-ended", "foreign", TEXT, put("output_item.done", "item.status", "in_progress")),
    ("one-terminal", "foreign", TEXT, double("completed")),
    ("one-terminal", "foreign", LENGTH, insert(-1, "response.completed", TEXT[9][1])),
    ("one-terminal", "openai", TEXT, after(6)),
    ("one-terminal", "openai", CANCELLED, drop(-1)),
    ("failed-has-error", "foreign", FAILED, put("failed", "response.error", None)),
    ("own-types", "openai", TEXT, put("output_item.added", "item", FOREIGN_ITEM)),
    ("own-events", "openai", TEXT, insert(4, "keepalive", PING)),
    ("own-events", "openai", TEXT, insert(4, "acme:trace", {"type": "acme:trace"})),
    ("in-progress-due", "openai", TEXT, drop("in_progress")),
    ("in-progress-due", "openai", TEXT, put("created", "response.background", True)),
    ("in-progress-due", "openai", QUEUED, drop("queued")),
    ("in-progress-due", "openai", QUEUED, drop("in_progress")),
    ("items-serial", "openai", CALLS, move("output_item.added", "output_item.done", 1)),
    ("part-due", "openai", TEXT, lambda events: events.__setitem__(slice(3, 8), [])),
    ("part-due", "openai", REASONING, insert("output_item.done", "response.content_part.added",
     {**REASONING[3][1], "content_index": 1})),
    ("zero-values", "openai", TEXT, put("content_part.added", "part.text", "Hi")),
    ("zero-values", "openai", CALL, put("output_item.added", "item.arguments", "{")),
    ("zero-values", "openai", TEXT, put("output_item.added", "item.status", "completed")),
    ("logprobs-sum", "openai", LOGPROBS, put("output_text.done", "logprobs", [])),
    ("logprobs-sum", "openai", LOGPROBS, put("content_part.done", "part.logprobs.0.logprob", -1)),
    ("logprobs-sum", "openai", LOGPROBS, put(DELTA, "logprobs", [])),
    ("done-exact", "openai", TEXT, put("output_item.done", "item.phase", "final_answer")),
    ("done-exact", "openai", TEXT, put("content_part.done", "part.annotations", [{}])),
    ("item-status", "openai", TEXT, put("output_item.done", "item.status", "incomplete")),
    ("item-status", "openai", TEXT, put("output_item.done", "item.status", "done")),
    ("item-status", "openai", LENGTH, put("output_item.done", "item.status", "completed")),
    ("item-status", "openai", CALLS, put("output_item.done", "item.status", "incomplete")),
    ("ciphertext-stable", "openai", ENCRYPTED,
     put("completed", "response.output.0.encrypted_content", "new")),
    ("error-then-failed", "openai", FAILED, drop("error")),
    ("error-then-failed", "openai", FAILED, drop("failed")),
    ("error-then-failed", "openai", FAILED, put("error", "error.message", "x")),
    ("error-then-failed", "openai", FAILED, put("failed", "response.error.message", "x")),
    ("failure-closes", "openai", FAILED, drop("output_item.done")),
    ("failure-closes", "openai", FAILED, put("failed", "response.output", [])),
    ("cancel-closes", "openai", TEXT, drop("completed")),
    ("cancel-closes", "openai", CANCELLED, drop("output_item.done")),
    ("echo-stable", "openai", TEXT, put("completed", "response.model", "other")),
    ("echo-stable", "openai", TEXT, put("completed", "response.background", 0)),
    ("output-at-end", "openai", TEXT, put("in_progress", "response.output", [{}])),
    ("output-at-end", "openai", TEXT, put("created", "response.usage", TEXT_USAGE)),
    ("output-not-empty", "openai", TEXT, lambda events: events.__setitem__(slice(2, 9), [])),
    ("usage-on-terminal", "openai", TEXT, put("completed", "response.usage", None)),
    ("terminal-details", "openai", TEXT, put("completed", "response.error", {"code": "x"})),
    ("terminal-details", "openai", LENGTH, put("incomplete", "response.incomplete_details", None)),
    ("terminal-details", "openai", LENGTH,
     put("incomplete", "response.incomplete_details.reason", "steps")),
    ("terminal-details", "openai", LENGTH, put("incomplete", "response.completed_at", 5)),
    ("terminal-due", "foreign", TEXT, drop("completed")),
    ("terminal-due", "foreign", TEXT, after(5)),
    ("object-name", "foreign", CHAT, put(2, "object", "chat.completion")),
    ("object-name", "foreign", COMPLETION, put(1, "object", "completion")),
    ("finish-once", "foreign", CHAT_TEXT, double(-2)),
    ("finish-once", "foreign", CHAT_TEXT, move(1, -1)),
    ("finish-once", "foreign", COMPLETION, move(0, -2)),
    ("usage-last", "foreign", CHAT, double(-2)),
    ("usage-last", "openai", CHAT, move(-2, -4)),
    ("head-stable", "openai", CHAT, put(2, "model", "other")),
    ("head-stable", "openai", CHAT, put(2, "created", 5)),
    ("usage-key", "openai", CHAT, put(3, "usage", ...)),
    ("usage-key", "openai", CHAT, put(3, "usage", USAGE)),
    ("usage-key", "openai", CHAT_TEXT, put(1, "usage", None)),
    ("usage-key", "openai", CHAT_TEXT, insert(-1, None, CHAT[-2][1])),
    ("usage-due", "openai", CHAT, drop(-2)),
    ("usage-key", "openai", CHAT_ASKED, put(1, "usage", None)),
    ("usage-key", "openai", CHAT_ASKED, put(1, "usage", ...)),
    ("exact-keys", "openai", CHAT_ASKED, put(1, "usage.prompt_tokens_details", {})),
    ("exact-keys", "openai", CHAT_ASKED, put(-2, "usage.prompt_tokens_details", ...)),
    ("usage-grows", "openai", CHAT_ASKED, put(2, "usage",
     {"prompt_tokens": 11, "completion_tokens": 0, "total_tokens": 11})),
    ("usage-grows", "openai", COMPLETION_ASKED, put(1, "usage",
     {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13})),
    ("usage-grows", "openai", CHAT_ASKED, put(-2, "usage",
     {**USAGE, "prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13})),
    ("usage-sums", "foreign", CHAT_ASKED, put(1, "usage.total_tokens", 99)),
    ("token-ids-key", "openai", CHAT_ASKED, put(1, "choices.0.token_ids", ...)),
    ("token-ids-key", "openai", CHAT_ASKED, put(0, "choices.0.token_ids", ...)),
    ("token-ids-key", "openai", CHAT_TEXT, put(1, "choices.0.token_ids", [1])),
    ("token-ids-key", "openai", CHAT_ASKED, put(0, "prompt_token_ids", ...)),
    ("token-ids-key", "openai", CHAT_ASKED, put(1, "prompt_token_ids", [5, 6])),
    ("token-ids-key", "openai", CHAT_TEXT, put(0, "prompt_token_ids", [5, 6])),
    ("token-ids-key", "openai", COMPLETION_ASKED, put(0, "choices.0.prompt_token_ids", ...)),
    ("token-ids-key", "openai", COMPLETION_ASKED, put(1, "choices.0.prompt_token_ids", [5, 6])),
    ("token-ids-key", "openai", COMPLETION_ASKED, put(0, "prompt_token_ids", [5, 6])),
    ("token-ids-key", "openai", COMPLETION_ASKED, put(1, "choices.0.token_ids", ...)),
    ("roles-first", "openai", CHAT_ASKED, put(0, "choices.0.token_ids", [1])),
    ("exact-keys", "openai", CHAT_ASKED, put(0, "choices.0.prompt_token_ids", [5, 6])),
    ("exact-keys", "openai", COMPLETION_ASKED, put(0, "choices.0.prompt_token_ids", [-1])),
    ("no-empty-delta", "openai", CHAT_ASKED,
     then(double(1), put(1, "choices.0.delta.content", ""), put(1, "choices.0.token_ids", []))),
    ("obfuscation-key", "openai", CHAT_ASKED, put(1, "obfuscation", ...)),
    ("obfuscation-key", "openai", CHAT_TEXT, put(-2, "obfuscation", "x")),
    ("obfuscation-key", "openai", CHAT_ASKED, put(-2, "obfuscation", "x")),
    ("obfuscation-key", "openai", COMPLETION_ASKED, put(0, "obfuscation", ...)),
    ("obfuscation-key", "openai", PADDED, put(ARGUMENTS, "obfuscation", ...)),
    ("obfuscation-key", "openai", CALLS, put(ARGUMENTS, "obfuscation", "x", 1)),
    ("exact-keys", "openai", PADDED, put(ARGUMENTS, "obfuscation", "")),
    ("exact-keys", "openai", PADDED, put("refusal.delta", "obfuscation", "x")),
    ("exact-keys", "openai", PADDED, put("completed", "obfuscation", "x")),
    ("exact-keys", "openai", PADDED, put("output_item.added", "obfuscation", "x")),
    ("exact-keys", "openai", CHAT_ASKED, put(0, "obfuscation", "")),
    ("exact-keys", "openai", CHAT_ASKED, put(1, "choices.0.obfuscation", "x")),
    ("exact-keys", "openai", TEXT, put("output_item.added", "item.encrypted_content", "")),
    ("zero-values", "openai", ENCRYPTED, put("output_item.added", "item.encrypted_content", "x")),
    ("done-exact", "openai", ENCRYPTED, put("output_item.done", "item.encrypted_content", "")),
    ("done-exact", "openai", ENCRYPTED, put("output_item.done", "item.encrypted_content", ...)),
    ("done-exact", "openai", ENCRYPTED, put("output_item.added", "item.encrypted_content", ...)),
    ("reasoning-names", "openai", CHAT_BOTH, put(2, "choices.0.delta.reasoning", ...)),
    ("reasoning-names", "openai", CHAT_BOTH, put(-2, "choices.0.delta.reasoning_content", ...)),
    ("reasoning-names", "openai", CHAT_BOTH, put(0, "choices.0.delta.reasoning", ...)),
    ("exact-keys", "openai", CHAT_TEXT, put(0, "choices.0.delta.reasoning_content", ...)),
    ("reasoning-names", "openai", CHAT_TEXT, put(2, "choices.0.delta.reasoning", None)),
    ("exact-keys", "openai", CHAT_BOTH, put(1, "choices.0.delta.reasoning", "3+3")),
    ("exact-keys", "openai", ECHOED, put(0, "choices.0.logprobs.token_logprobs", [None, None])),
    ("exact-keys", "openai", ECHOED, put(0, "choices.0.logprobs.top_logprobs", [{"": -1}, {}])),
    ("exact-keys", "openai", ECHOED, put(1, "choices.0.logprobs",
     {"tokens": ["Hi"], "token_logprobs": [None], "top_logprobs": [None], "text_offset": [2]})),
    ("finish-reason", "openai", CHAT_TEXT, put(-2, "choices.0.finish_reason", "tool_calls")),
    ("finish-reason", "openai", CHAT_CALLS, put(-2, "choices.0.finish_reason", "stop")),
    ("finish-reason", "openai", COMPLETION, put(1, "choices.0.finish_reason", "tool_calls")),
    ("logprobs-key", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs", ...)),
    ("logprobs-key", "openai", CHAT_LOGPROBS, put(1, "choices.0.logprobs", None)),
    ("logprobs-key", "openai", CHAT_LOGPROBS, put(-2, "choices.0.logprobs", {"content": []})),
    ("logprobs-key", "openai", COMPLETION_LOGPROBS, put(1, "choices.0.logprobs", None)),
    ("finish-due", "foreign", CHAT_TEXT, drop(-2)),
    ("finish-due", "foreign", CHAT_TEXT, after(2)),
    ("finish-due", "foreign", COMPLETION, put(1, "choices.0.finish_reason", None)),
    ("one-choice-per-chunk", "openai", CHAT, put(2, "choices", [{}, {}])),
    ("one-choice-per-chunk", "openai", COMPLETION, double_choice),
    ("role-due", "foreign", CHAT_TEXT, drop(0)),
    ("role-due", "foreign", CHAT_TEXT, put(0, "choices.0.delta.role", "")),
    ("role-once", "openai", CHAT_TEXT, double(0)),
    ("role-once", "openai", CHAT_TEXT, put(1, "choices.0.delta.role", "assistant")),
    ("choices-dense", "openai", CHAT, drop(0)),
    ("choices-dense", "openai", CHAT, move(1, 0)),
    ("tool-fragment-shape", "foreign", CHAT_CALLS, drop(1)),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(1, "choices.0.delta.tool_calls.0.custom", {"name": "g", "input": "x"})),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(2, "choices.0.delta.tool_calls.0.custom", {"input": "x"})),
    ("tool-fragment-shape", "foreign", CHAT_CALLS, put(2, "choices.0.delta.tool_calls.0.id", "x")),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(2, "choices.0.delta.tool_calls.0.function.name", "f")),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(2, "choices.0.delta.tool_calls.0.type", "custom")),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(1, "choices.0.delta.tool_calls.0.type", "magic")),
    ("tool-fragment-shape", "foreign", CHAT_CALLS,
     put(2, "choices.0.delta.tool_calls.0.function", ...)),
    ("roles-first", "openai", CHAT, move(1, 3)),
    ("roles-first", "openai", CHAT, move(-2, 0)),
    ("roles-first", "openai", CHAT, put(0, "choices.0.delta.content", "Hi")),
    ("roles-first", "openai", CHAT_LOGPROBS, put(0, "choices.0.logprobs", {"content": []})),
    ("roles-first", "openai", CHAT_TEXT, put(0, "choices.0.stop_reason", "END")),
    ("roles-first", "openai", CHAT, put(0, "choices.0.delta.reasoning_content", "Hi")),
    ("one-channel-per-delta", "openai", CHAT, put(2, "choices.0.delta.content", "")),
    ("finish-alone", "openai", CHAT_TEXT, put(-2, "choices.0.delta.content", "")),
    ("one-channel-per-delta", "openai", CHAT_BOTH,
     then(put(2, "choices.0.delta.reasoning", "x"),
          put(2, "choices.0.delta.reasoning_content", "x"))),
    ("calls-serial", "openai", CHAT_CALLS, move(2, 5)),
    ("finish-alone", "openai", CHAT_TEXT, put(-2, "choices.0.delta.content", "x")),
    ("logprobs-parallel", "foreign", COMPLETION_LOGPROBS, put(0, "choices.0.logprobs.tokens", [])),
    ("text-offset", "openai", COMPLETION_LOGPROBS, put(0, "choices.0.logprobs.text_offset", [5])),
    ("text-offset", "openai", COMPLETION_LOGPROBS, put(1, "choices.0.logprobs.text_offset", [-1])),
]  # fmt: skip

# (rule, profile, stream, change of its bytes)
BREAKS_BYTES: list[tuple[str, str, Events, Callable[[bytes], bytes]]] = [
    ("sse-stream", "foreign", TEXT, lambda data: b'{"id": 1}\n' + data),
    ("sse-stream", "foreign", TEXT, lambda data: b"\x89PNG\r\n\x1a\n" + data),
    ("sse-stream", "foreign", TEXT, lambda data: data.decode().encode("utf-16")),
    ("sse-stream", "foreign", TEXT, lambda data: b"<html>"),
    ("has-events", "foreign", TEXT, lambda data: b""),
    ("has-events", "foreign", TEXT, lambda data: b"\xef\xbb\xbf"),
    ("has-events", "foreign", TEXT, lambda data: b": ping\n\nid: 7\n\n"),
    ("utf8", "foreign", TEXT, raw(b"Hi", b"H\xff")),
    ("utf8", "foreign", TEXT, raw(b"Hi", b"H\xed\xa0\x80")),
    ("utf8", "foreign", TEXT, raw(b"Hi", b"H\0")),
    ("utf8", "foreign", TEXT, lambda data: b": \0\n" + data),
    ("sse-field", "foreign", TEXT, raw(b"\n\nevent", b"\n\nEvent")),
    ("sse-field", "foreign", TEXT, raw(b"\n\nevent", b"\n\n\xef\xbb\xbfevent")),
    ("sse-field", "foreign", CHAT, raw(b"\n\ndata", b"\n\n data")),
    ("sse-field", "foreign", CHAT, raw(b"\n\ndata", b"\n\nHTTP/1.1 200 OK\n\ndata")),
    ("frame-size", "foreign", TEXT, lambda data: data + b": " + b"x" * (MAX_SIZE - 1)),
    ("frame-size", "foreign", TEXT,
     lambda data: data + (b"data: " + b"x" * (MAX_SIZE // 2) + b"\n") * 2),
    ("frame-whole", "foreign", TEXT, lambda data: data[:-1]),
    ("frame-whole", "foreign", TEXT, lambda data: data[:-2]),
    ("frame-whole", "foreign", CHAT, lambda data: data + b": ping"),
    ("data-present", "foreign", TEXT, lambda data: b"event: ping\n\n" + data),
    ("plain-framing", "openai", TEXT, lambda data: data.replace(b"\n", b"\r\n")),
    ("plain-framing", "openai", TEXT, lambda data: data.replace(b"\n", b"\r")),
    ("plain-framing", "openai", TEXT, lambda data: b"\xef\xbb\xbf" + data),
    ("plain-framing", "openai", TEXT, lambda data: b"retry: 1\n\n" + data),
    ("plain-framing", "openai", TEXT, raw(b"\ndata: ", b"\nid: 7\ndata: ")),
    ("plain-framing", "openai", TEXT, raw(b"\ndata: ", b"\n: ping\ndata: ")),
    ("plain-framing", "openai", TEXT, raw(b"\ndata: ", b"\ndata:")),
    ("plain-framing", "openai", CHAT, raw(b",", b",\ndata: ")),
    ("plain-framing", "openai", TEXT, lambda data: data + b": ping\r\n\r\n"),
    ("plain-framing", "openai", CHAT, raw(b"data: [DONE]\n", b"data: [DONE]\nevent: x\n")),
]  # fmt: skip


def name_of(case: tuple[str, str, Events, Any]) -> str:
    return f"{case[0]}-{case[1]}"


def rule_broken(data: bytes, profile: Any) -> str:
    violation = check_stream(data, profile=profile).violation
    return "accepted" if violation is None else violation.rule


@pytest.mark.parametrize("case", BREAKS, ids=name_of)
def test_a_changed_event_breaks_its_rule_first(case: tuple[str, str, Events, Change]) -> None:
    rule, profile, events, change = case
    before = copy.deepcopy(events)
    changed = copy.deepcopy(events)
    change(changed)
    if rule != "seq-dense":
        renumber(changed)
    assert events == before
    assert rule_broken(render(events), profile) == "accepted"
    data = render(changed)
    assert rule_broken(data, profile) == rule
    for other in PROFILES:
        if other not in RULES[rule].profiles:
            assert rule_broken(data, other) != rule


@pytest.mark.parametrize("case", BREAKS_BYTES, ids=name_of)
def test_changed_bytes_break_their_rule_first(
    case: tuple[str, str, Events, Callable[[bytes], bytes]],
) -> None:
    rule, profile, events, change = case
    data = render(events)
    assert rule_broken(data, profile) == "accepted"
    assert rule_broken(change(data), profile) == rule
    for other in PROFILES:
        if other not in RULES[rule].profiles:
            assert rule_broken(change(data), other) != rule


def test_every_rule_has_a_stream_that_breaks_it() -> None:
    assert {case[0] for case in (*BREAKS, *BREAKS_BYTES)} == set(RULES)


def test_the_code_names_the_rules_of_the_registry_and_no_others() -> None:
    """A rule is a string where it is broken, asked for, or raised by the reader."""
    asks = {"broken", "equal", "keeps", "Malformed", "BadData", "_break", "_compare_output"}
    named: set[str] = set()
    for path in Path(responsory.check.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = node.func
                name = (
                    called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                )
                if name in asks and node.args:
                    named |= {
                        leaf.value
                        for leaf in ast.walk(node.args[0])
                        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
                    }
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "rule":
                named |= {
                    leaf.value
                    for leaf in ast.walk(node.value)
                    if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
                }
    assert named == set(RULES)
