"""Streams read as a client reads them: from bytes to the final object, with no help from the log.

The public SDKs' stream helpers do the same; these are short enough to be read in a test failure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from responsory.testing.expect import expect

if TYPE_CHECKING:
    from collections.abc import Iterable

DONE = "[DONE]"
REASONING = frozenset({"reasoning_content", "reasoning"})
"""What a chat delta can call reasoning."""


def parse(frames: Iterable[bytes]) -> list[tuple[str | None, Any]]:
    """(event name, data) of each frame. Raises InvariantError for bytes that are not whole frames,
    or that go on after ``[DONE]``."""
    parsed: list[tuple[str | None, Any]] = []
    for frame in b"".join(frames).decode().split("\n\n")[:-1]:
        expect(not parsed or parsed[-1][1] != DONE, "nothing follows [DONE]")
        name: str | None = None
        lines = frame.split("\n")
        if lines[0].startswith("event: "):
            name = lines.pop(0).removeprefix("event: ")
        one_line = len(lines) == 1 and lines[0].startswith("data: ")
        expect(one_line, f"a frame has one line of data: {frame!r}")
        data = lines[0].removeprefix("data: ")
        parsed.append((name, DONE if data == DONE else json.loads(data)))
    return parsed


def fold_responses(frames: Iterable[bytes]) -> dict[str, Any]:
    """The response built up from the frames, the terminal one's status and usage included."""
    response: dict[str, Any] = {}
    for name, data in parse(frames):
        if data == DONE:
            break
        expect(name == data["type"], "a frame's name is the type in its data")
        if "response" in data:
            kept = response.get("output", [])
            response = {**data["response"], "output": kept}
        elif name == "response.output_item.added":
            dense = data["output_index"] == len(response["output"])
            expect(dense, "items come in index order")
            response["output"].append(data["item"])
        elif name == "response.output_item.done":
            same = _same_but_status(response["output"][-1], data["item"])
            expect(same, "an item that is done is what was streamed")
            response["output"][data["output_index"]] = data["item"]
        elif name == "response.content_part.added":
            response["output"][data["output_index"]]["content"].append(data["part"])
        elif name is not None and name.endswith(".delta"):
            _add_delta(response["output"][data["output_index"]], data)
    return response


def _add_delta(item: dict[str, Any], data: dict[str, Any]) -> None:
    expect(data["item_id"] == item["id"], "a delta names its item")
    if "content_index" not in data:
        item["arguments" if "arguments" in item else "input"] += data["delta"]
        return
    part = item["content"][data["content_index"]]
    part["refusal" if part["type"] == "refusal" else "text"] += data["delta"]
    if "logprobs" in data:
        part["logprobs"] += data["logprobs"]


def _same_but_status(streamed: dict[str, Any], done: dict[str, Any]) -> bool:
    """And but the encrypted content of reasoning, which comes when it is done."""
    sealed = {"encrypted_content": None} if "encrypted_content" in streamed else {}
    return {**streamed, "status": None, **sealed} == {**done, "status": None, **sealed}


def fold_chat(frames: Iterable[bytes]) -> dict[str, Any]:
    """``{choices, usage, error}``, and ``prompt_token_ids`` where these came; a choice is as in the
    unary body, with "" for absent text."""
    choices: dict[int, dict[str, Any]] = {}
    usage = error = None
    prompt: dict[str, Any] = {}
    for _, data in parse(frames):
        if data == DONE:
            break
        if "error" in data:
            error = data["error"]
            continue
        usage = data.get("usage") or usage
        if "prompt_token_ids" in data:
            expect(not prompt, "the ids of the prompt come once")
            prompt["prompt_token_ids"] = data["prompt_token_ids"]
        for chunk in data["choices"]:
            delta, index = chunk["delta"], chunk["index"]
            if "role" in delta:
                expect(index == len(choices), "roles come once, in index order")
                message: dict[str, Any] = {"role": delta["role"], "content": "", "refusal": ""}
                message |= dict.fromkeys(REASONING & delta.keys(), "")
                choices[index] = {"message": message, "logprobs": None, "finish_reason": None}
            choice = choices[index]
            expect(choice["finish_reason"] is None, "nothing follows a choice's finish chunk")
            for key in {"content", "refusal", *REASONING} & choice["message"].keys():
                choice["message"][key] += delta.get(key) or ""
            _add_ids(choice, chunk)
            for call in delta.get("tool_calls", ()):
                _add_call(choice["message"].setdefault("tool_calls", []), call)
            if chunk.get("logprobs"):
                choice["logprobs"] = (choice["logprobs"] or []) + chunk["logprobs"]["content"]
            choice["finish_reason"] = chunk["finish_reason"]
            choice["stop_reason"] = chunk.get("stop_reason")
    return {"choices": choices, "usage": usage, "error": error, **prompt}


def _add_ids(choice: dict[str, Any], chunk: dict[str, Any]) -> None:
    if "token_ids" in chunk:
        choice["token_ids"] = choice.get("token_ids", []) + chunk["token_ids"]


def _add_call(calls: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    fragment = dict(fragment)
    index = fragment.pop("index")
    if index == len(calls):
        calls.append(fragment)
        return
    expect(index == len(calls) - 1, "call indexes are dense")
    key = calls[index]["type"]
    expect(set(fragment) == {key}, "id, type and name come once")
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
            expect(choice["finish_reason"] is None, "nothing follows a choice's finish chunk")
            choice["text"] += chunk["text"]
            if "prompt_token_ids" in chunk:
                expect("prompt_token_ids" not in choice, "the ids of the prompt come once")
                choice["prompt_token_ids"] = chunk["prompt_token_ids"]
            _add_ids(choice, chunk)
            for key, values in (chunk["logprobs"] or {}).items():
                shape = choice["logprobs"] = choice["logprobs"] or {}
                shape[key] = shape.get(key, []) + values
            choice["finish_reason"] = chunk["finish_reason"]
            choice["stop_reason"] = chunk.get("stop_reason")
    return {"choices": choices, "usage": usage, "error": error}
