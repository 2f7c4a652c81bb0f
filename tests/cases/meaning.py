"""What a body says, in the words of a case's ``expect``, and where the two differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Items = Sequence[Mapping[str, Any]]
WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
CALLS = {"function": "function_call", "custom": "custom_tool_call"}


def written_as(got: Any, want: Any) -> bool:
    """Whether these are the arguments: the text itself, or of a call that was cut in a notation
    other than JSON a beginning of it, which does not parse."""
    if isinstance(want, str) or not isinstance(got, str):
        return bool(got == want)
    if not (want["prefix_of"].startswith(got) and got.startswith(want["at_least"])):
        return False
    try:
        json.loads(got)
    except ValueError:
        return True
    return bool(want["valid_json"])


def same_items(got: Items, want: Items) -> bool:
    """Whether the items are those, in that order."""
    return len(got) == len(want) and all(map(_same_item, got, want))


def _same_item(got: Mapping[str, Any], want: Mapping[str, Any]) -> bool:
    if got.get("type") != want["type"] or got.get("status", want["status"]) != want["status"]:
        return False
    name = WRITTEN.get(want["type"])
    if name is None:
        return bool(got["text"] == want["text"])
    return bool(got["name"] == want["name"]) and written_as(got[name], want[name])


def of_responses(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a resource."""
    items = []
    for item in body["output"]:
        said: dict[str, Any] = {"type": item["type"], "status": item["status"]}
        if (name := WRITTEN.get(item["type"])) is not None:
            said |= {"name": item["name"], name: item[name]}
        else:
            said["text"] = "".join(part["text"] for part in item["content"])
        items.append(said)
    return items


def of_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """What a chat message says, by channel."""
    calls = []
    for call in message.get("tool_calls") or ():
        inner = call[call["type"]]
        written = "arguments" if call["type"] == "function" else "input"
        calls.append({"type": CALLS[call["type"]], "name": inner["name"], written: inner[written]})
    return {
        "content": message.get("content") or "",
        "reasoning": message.get("reasoning_content") or "",
        "calls": calls,
    }


def same_message(got: Mapping[str, Any], want: Items) -> bool:
    """Whether a chat message says what the items do: channel by channel, calls in order."""

    def joined(kind: str) -> str:
        return "".join(item["text"] for item in want if item["type"] == kind)

    return (
        got["content"] == joined("message")
        and got["reasoning"] == joined("reasoning")
        and same_items(got["calls"], [item for item in want if item["type"] in WRITTEN])
    )
