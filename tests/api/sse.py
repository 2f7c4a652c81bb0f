"""Server-sent events as a strict client reads them, and what their chunks add up to."""

from __future__ import annotations

import json
from typing import Any

DONE = "[DONE]"


def events(data: bytes) -> list[tuple[str | None, Any]]:
    """(event name, JSON data) of every frame, the last being ``[DONE]``; comments are left out."""
    assert data.endswith(b"\n\n")
    result: list[tuple[str | None, Any]] = []
    for frame in data.decode().split("\n\n")[:-1]:
        if frame.startswith(":"):
            continue
        lines = [line.partition(": ") for line in frame.split("\n")]
        fields = {name: value for name, _, value in lines}
        assert len(fields) == len(lines)
        assert fields.keys() <= {"event", "data"}
        value = fields["data"]
        result.append((fields.get("event"), value if value == DONE else json.loads(value)))
    assert [value for _, value in result].count(DONE) == 1
    assert result[-1] == (None, DONE)
    return result


def chunks(data: bytes) -> list[dict[str, Any]]:
    """The chunks of a chat or completions stream."""
    pairs = events(data)
    assert all(name is None for name, _ in pairs)
    return [value for _, value in pairs[:-1]]


def fold_chat(data: bytes) -> list[dict[str, Any]]:
    """Content, finish and logprob tokens of each choice of a chat stream."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks(data):
        for part in chunk.get("choices", ()):
            choice = choices.setdefault(
                part["index"],
                {"content": "", "reasoning": "", "finish_reason": None, "tokens": []},
            )
            choice["reasoning"] += part["delta"].get("reasoning_content") or ""
            choice["content"] += part["delta"].get("content") or ""
            choice["finish_reason"] = part["finish_reason"] or choice["finish_reason"]
            logprobs = part.get("logprobs") or {"content": []}
            choice["tokens"] += [entry["token"] for entry in logprobs["content"]]
    return [choices[index] for index in sorted(choices)]


def fold_completions(data: bytes) -> list[dict[str, Any]]:
    """Text, finish and logprob tokens of each choice of a completions stream."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks(data):
        for part in chunk.get("choices", ()):
            choice = choices.setdefault(
                part["index"], {"text": "", "finish_reason": None, "tokens": []}
            )
            choice["text"] += part["text"]
            choice["finish_reason"] = part["finish_reason"] or choice["finish_reason"]
            choice["tokens"] += (part["logprobs"] or {"tokens": []})["tokens"]
    return [choices[index] for index in sorted(choices)]
