"""Calls and their outputs in a history, as templates count on them.

Many families write an output without the id of its call, so that only its place tells which call it
answers; others write the name of the tool beside it. A client may answer calls in any order, and
the name is hardly ever sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]


def in_call_order(history: Sequence[Message]) -> list[Message]:
    """The history with the outputs behind a message of several calls in the order of the calls, and
    with the names of the tools on them.

    An output that belongs to no call of that message leaves the order as it was.
    """
    ordered: list[Message] = []
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    start = 0
    """Of the outputs behind the latest message with calls."""
    for message in history:
        if message["role"] == "tool":
            name = names.get(message["tool_call_id"])
            ordered.append(message if name is None else {"name": name, **message})
            continue
        _sort(ordered, start, places)
        ordered.append(message)
        start, places = len(ordered), {}
        for place, call in enumerate(message.get("tool_calls", ())):
            names[call["id"]] = call["function"]["name"]
            places[call["id"]] = place
    _sort(ordered, start, places)
    return ordered


def _sort(messages: list[Message], start: int, places: dict[str, int]) -> None:
    outputs = messages[start:]
    if len(outputs) > 1 and all(each["tool_call_id"] in places for each in outputs):
        messages[start:] = sorted(outputs, key=lambda each: places[each["tool_call_id"]])
