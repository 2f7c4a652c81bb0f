"""Public ids, all derived from the tail T of the response: an id that was streamed cannot differ
from the final one, because neither is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responsory.values import ItemType

ITEM_PREFIX: dict[ItemType, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}


def response_id(tail: str) -> str:
    return f"resp_{tail}"


def item_id(item_type: ItemType, tail: str, item: int) -> str:
    """``item`` is the output index."""
    return f"{ITEM_PREFIX[item_type]}_{tail}_{item}"


def call_id(tail: str, item: int) -> str:
    """The Responses API's ``call_id`` of the call at output index ``item``."""
    return f"call_{tail}_{item}"


def is_derived(call_id: str, tail: str) -> bool:
    """Whether a ``call_id`` looks like one that is derived from this tail."""
    return call_id.startswith(f"call_{tail}_")


def chat_id(tail: str) -> str:
    return f"chatcmpl-{tail}"


def chat_call_id(tail: str, choice: int, call: int) -> str:
    """``call`` counts the tool calls of the choice from 0."""
    return f"call_{tail}_{choice}_{call}"


def completion_id(tail: str) -> str:
    return f"cmpl-{tail}"
