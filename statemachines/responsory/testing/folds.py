"""Streams read as a client reads them: from bytes to the final object, with no help from the log.

The public SDKs' stream helpers do the same; these are short enough to be read in a test failure.
"""
# ruff: noqa: S101  # to assert is what this module is for

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

DONE = "[DONE]"


def parse(frames: Iterable[bytes]) -> list[tuple[str | None, Any]]:
    """(event name, data) of each frame. Raises AssertionError for bytes that are not whole frames,
    or that go on after ``[DONE]``."""
    parsed: list[tuple[str | None, Any]] = []
    for frame in b"".join(frames).decode().split("\n\n")[:-1]:
        assert not parsed or parsed[-1][1] != DONE, "nothing follows [DONE]"
        name: str | None = None
        lines = frame.split("\n")
        if lines[0].startswith("event: "):
            name = lines.pop(0).removeprefix("event: ")
        assert len(lines) == 1, frame
        assert lines[0].startswith("data: "), frame
        data = lines[0].removeprefix("data: ")
        parsed.append((name, DONE if data == DONE else json.loads(data)))
    return parsed


def fold_responses(frames: Iterable[bytes]) -> dict[str, Any]:
    """The response built up from the frames, the terminal one's status and usage included."""
    response: dict[str, Any] = {}
    for name, data in parse(frames):
        if data == DONE:
            break
        assert name == data["type"]
        if "response" in data:
            kept = response.get("output", [])
            response = {**data["response"], "output": kept}
        elif name == "response.output_item.added":
            assert data["output_index"] == len(response["output"])
            response["output"].append(data["item"])
        elif name == "response.output_item.done":
            assert _same_but_status(response["output"][-1], data["item"])
            response["output"][data["output_index"]] = data["item"]
        elif name == "response.content_part.added":
            response["output"][data["output_index"]]["content"].append(data["part"])
        elif name is not None and name.endswith(".delta"):
            _add_delta(response["output"][data["output_index"]], data)
    return response


def _add_delta(item: dict[str, Any], data: dict[str, Any]) -> None:
    assert data["item_id"] == item["id"]
    if "content_index" not in data:
        item["arguments" if "arguments" in item else "input"] += data["delta"]
        return
    part = item["content"][data["content_index"]]
    part["refusal" if part["type"] == "refusal" else "text"] += data["delta"]
    if "logprobs" in data:
        part["logprobs"] += data["logprobs"]


def _same_but_status(streamed: dict[str, Any], done: dict[str, Any]) -> bool:
    return {**streamed, "status": None} == {**done, "status": None}


def fold_chat(frames: Iterable[bytes]) -> dict[str, Any]:
    """``{choices, usage, error}``; a choice is as in the unary body, with "" for absent text."""
    choices: dict[int, dict[str, Any]] = {}
    usage = error = None
    for _, data in parse(frames):
        if data == DONE:
            break
        if "error" in data:
            error = data["error"]
            continue
        usage = data.get("usage") or usage
        for chunk in data["choices"]:
            delta, index = chunk["delta"], chunk["index"]
            if "role" in delta:
                assert index == len(choices), "roles come once, in index order"
                message: dict[str, Any] = {"role": delta["role"]}
                message |= {"content": "", "refusal": "", "reasoning_content": ""}
                choices[index] = {"message": message, "logprobs": None, "finish_reason": None}
            choice = choices[index]
            assert choice["finish_reason"] is None, "nothing follows a choice's finish chunk"
            for key in ("content", "refusal", "reasoning_content"):
                choice["message"][key] += delta.get(key) or ""
            for call in delta.get("tool_calls", ()):
                _add_call(choice["message"].setdefault("tool_calls", []), call)
            if chunk.get("logprobs"):
                choice["logprobs"] = (choice["logprobs"] or []) + chunk["logprobs"]["content"]
            choice["finish_reason"] = chunk["finish_reason"]
            choice["stop_reason"] = chunk.get("stop_reason")
    return {"choices": choices, "usage": usage, "error": error}


def _add_call(calls: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    fragment = dict(fragment)
    index = fragment.pop("index")
    if index == len(calls):
        calls.append(fragment)
        return
    assert index == len(calls) - 1, "call indexes are dense"
    key = calls[index]["type"]
    assert set(fragment) == {key}, "id, type and name come once"
    for field, text in fragment[key].items():
        calls[index][key][field] += text


def fold_completions(frames: Iterable[bytes]) -> dict[str, Any]:
    """``{choices, usage, error}``; a choice is as in the unary body."""
    choices: dict[int, dict[str, Any]] = {}
    usage = error = None
    for _, data in parse(frames):
        if data == DONE:
            break
        if "error" in data:
            error = data["error"]
            continue
        usage = data.get("usage") or usage
        for chunk in data["choices"]:
            choice = choices.setdefault(
                chunk["index"], {"text": "", "logprobs": None, "finish_reason": None}
            )
            assert choice["finish_reason"] is None, "nothing follows a choice's finish chunk"
            choice["text"] += chunk["text"]
            for key, values in (chunk["logprobs"] or {}).items():
                shape = choice["logprobs"] = choice["logprobs"] or {}
                shape[key] = shape.get(key, []) + values
            choice["finish_reason"] = chunk["finish_reason"]
            choice["stop_reason"] = chunk.get("stop_reason")
    return {"choices": choices, "usage": usage, "error": error}
