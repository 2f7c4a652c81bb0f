"""Message content in the two forms templates read: one string, or a list of text parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXT_KEYS = ("text", "refusal")


def as_text(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with its parts joined to one string; other content stays as it is."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "".join(map(_part_text, content))}


def as_parts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message with its string as one text part; other content stays as it is."""
    content = message.get("content")
    if not isinstance(content, str):
        return message
    return {**message, "content": [{"type": "text", "text": content}]}


def _part_text(part: Mapping[str, Any]) -> str:
    return next((str(part[key]) for key in _TEXT_KEYS if key in part), "")
