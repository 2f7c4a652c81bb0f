"""The files of a golden folder, made from the log of each choice. Needs the library alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from responsory import EventLog
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
)

Stream = ResponsesStream | ChatStream | CompletionsStream


def one_line(body: Mapping[str, Any]) -> bytes:
    """The JSON of a body as it is sent, and a line feed."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"{text}\n".encode()


def rendered(logs: Sequence[EventLog]) -> dict[str, bytes]:
    """The files of a golden folder, by name, from the log of each choice."""
    scored = has_logprobs(logs)
    files = {log_name(index, len(logs)): b"".join(log.lines()) for index, log in enumerate(logs)}
    options: dict[str, Any] = {"choices": len(logs), "include_usage": True, "logprobs": scored}
    files["chat.sse"] = stream_bytes(ChatStream(**options), logs)
    files["completions.sse"] = stream_bytes(CompletionsStream(**options), logs)
    if len(logs) == 1:
        files["responses.sse"] = stream_bytes(ResponsesStream(), logs)
    return files | {name: one_line(body) for name, body in bodies(logs, scored).items()}


def has_logprobs(logs: Sequence[EventLog]) -> bool:
    """Whether the request asked for logprobs: a compacted log shows it too."""
    return any(event.logprobs for log in logs for event in log if isinstance(event, ev.TextDone))


def log_name(choice: int, count: int) -> str:
    return "log.jsonl" if count == 1 else f"log.{choice}.jsonl"


def stream_bytes(stream: Stream, logs: Sequence[EventLog]) -> bytes:
    """Each log in one feed; the last choice speaks first."""
    frames: list[bytes] = []
    for index in reversed(range(len(logs))):
        frames += stream.feed(index, list(logs[index]))
    return b"".join(frames)


def bodies(logs: Sequence[EventLog], scored: bool) -> dict[str, dict[str, Any]]:
    """The unary bodies by file name, those that there are."""
    found: dict[str, dict[str, Any]] = {}
    if len(logs) == 1:
        found["responses.json"] = response_body(logs[0])
    makers: dict[str, Callable[..., dict[str, Any]]] = {
        "chat.json": chat_body,
        "completions.json": completion_body,
    }
    for name, body in makers.items():
        try:
            found[name] = body(logs, logprobs=scored)
        except LogError:
            continue
    return found
