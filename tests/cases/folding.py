"""What a client makes of a stream: the body that it would have got without one.

Each fold raises ``AssertionError`` for what no stream may do: deltas behind the end of their item,
two terminal events, chunks behind the finish reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import attrs

DONE = b"data: [DONE]\n\n"
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
DELTAS = {
    "response.output_text.delta": "text",
    "response.reasoning_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}


@attrs.define
class Folded:
    """``body`` as the unary one; ``error``: the error that ended the stream, if one did."""

    body: dict[str, Any] | None
    error: dict[str, Any] | None = None


def events(frames: Sequence[bytes]) -> list[dict[str, Any]]:
    """The data of each frame."""
    assert frames
    assert frames[-1] == DONE
    return [json.loads(frame[frame.index(b"data: ") + 6 :]) for frame in frames[:-1]]


def fold_responses(frames: Sequence[bytes]) -> Folded:
    """The terminal resource, held against the deltas."""
    found = events(frames)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    last = found[-1]
    assert [event["type"] for event in found if event["type"] in ENDS] == [last["type"]]
    body: dict[str, Any] = last["response"]
    assert last["type"] == f"response.{body['status']}"
    told = [""] * len(body["output"])
    items: dict[int, str] = {}
    done: list[dict[str, Any]] = []
    for event in found:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert event["output_index"] == len(items)
            items[event["output_index"]] = event["item"]["id"]
        elif kind == "response.output_item.done":
            done.append(event["item"])
        elif kind in DELTAS:
            at = event["output_index"]
            assert at == len(items) - 1 == len(done)
            assert event["item_id"] == items[at]
            told[at] += event["delta"]
    assert done == body["output"]
    for item, text in zip(done, told, strict=True):
        name = WRITTEN.get(item["type"])
        shown = item[name] if name else "".join(part["text"] for part in item["content"])
        assert shown == text
    errors = [event["error"] for event in found if event["type"] == "error"]
    assert bool(errors) == (body["status"] == "failed")
    return Folded(body, errors[0] if errors else None)


def fold_chat(frames: Sequence[bytes]) -> Folded:
    """The body whose messages are the joined deltas."""
    return _fold_chunks(frames, _chat_delta, "chat.completion")


def fold_completions(frames: Sequence[bytes]) -> Folded:
    """The body whose texts are the joined ones."""
    return _fold_chunks(frames, _text_delta, "text_completion")


FOLDS = {"chat": fold_chat, "responses": fold_responses, "completions": fold_completions}

Add = Callable[[dict[str, Any], dict[str, Any]], None]


def _fold_chunks(frames: Sequence[bytes], add: Add, kind: str) -> Folded:
    found = events(frames)
    error = found.pop()["error"] if "error" in found[-1] else None
    choices: dict[int, dict[str, Any]] = {}
    usage = None
    for chunk in found:
        assert usage is None, "the usage comes last"
        if not chunk["choices"]:
            usage = chunk["usage"]
            continue
        for part in chunk["choices"]:
            choice = choices.setdefault(part["index"], {"finish_reason": None, "logprobs": None})
            assert choice["finish_reason"] is None, "something behind the finish reason"
            add(choice, part)
            choice["finish_reason"] = part["finish_reason"]
            choice["stop_reason"] = part.get("stop_reason")
            _join_logprobs(choice, part.get("logprobs"))
    if error is not None:
        assert usage is None
        assert all(choice["finish_reason"] is None for choice in choices.values())
    body = {key: found[0][key] for key in ("id", "created", "model")} if found else {}
    body.update(
        object=kind,
        choices=[{"index": index, **choices[index]} for index in sorted(choices)],
        usage=usage,
    )
    return Folded(body, error)


def _join_logprobs(choice: dict[str, Any], more: dict[str, Any] | None) -> None:
    if more is None:
        return
    if choice["logprobs"] is None:
        choice["logprobs"] = dict.fromkeys(more)
    for key, entries in more.items():
        if entries is not None:
            choice["logprobs"][key] = (choice["logprobs"][key] or []) + entries


def _text_delta(choice: dict[str, Any], part: dict[str, Any]) -> None:
    choice["text"] = choice.get("text", "") + part["text"]


def _chat_delta(choice: dict[str, Any], part: dict[str, Any]) -> None:
    delta = part["delta"]
    if part["finish_reason"] is not None:
        assert not any(delta.values()), "the finish reason comes alone"
    message = choice.setdefault("message", {})
    if "role" in delta:
        assert "role" not in message
        message["role"] = delta["role"]
    for key in ("content", "reasoning_content"):
        if delta.get(key):
            message[key] = message.get(key, "") + delta[key]
    for call in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        kind = next(key for key in ("function", "custom") if key in call)
        if call["index"] == len(calls):
            calls.append({"id": call["id"], "type": call["type"], kind: dict(call[kind])})
            assert call["type"] == kind
            assert call[kind]["name"]
        else:
            assert call["index"] == len(calls) - 1
            assert set(call) == {"index", kind}
            (written,) = call[kind]
            calls[-1][kind][written] += call[kind][written]
