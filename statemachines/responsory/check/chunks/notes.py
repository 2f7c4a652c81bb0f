"""Chunks about an answer that are no part of it: what content filters of some servers send.

Azure OpenAI sends them with an empty ``id``, ``object`` and ``model``: one about the prompt before
all else, without choices, and later ones that name a choice but have no delta for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.shapes import INDEX, STRING, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTE = Shape({"index": INDEX}, {"finish_reason": STRING.or_null()}, open=True)
"""A choice in such a chunk. The finish reason is the answer's own, where a filter ended it."""
CARRIERS = ("delta", "text")


def is_note(data: Mapping[str, Any]) -> bool:
    """Whether a chunk has no head and carries nothing of any choice."""
    choices = data.get("choices")
    if data.get("object") != "" or data.get("id") != "" or data.get("usage") is not None:
        return False
    return isinstance(choices, list) and not any(
        isinstance(choice, dict) and any(map(choice.get, CARRIERS)) for choice in choices
    )
