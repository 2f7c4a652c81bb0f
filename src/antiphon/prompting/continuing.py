"""A prompt that ends inside its last message, so that the model goes on with that message.

A template closes every message in its own way, and only it knows how. So a mark is put at the end
of the last message's text, and what the template wrote from there on is cut off. The mark is a lone
surrogate that no valid text holds; it is not white space, so ``trim`` leaves the end of the text as
it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.errors import InvalidRequest

END_MARK = "\udfff"

Message = Mapping[str, Any]


def end_marked(messages: Sequence[Message]) -> list[Message]:
    """The messages (their content is a string), the last one's text marked at its end."""
    *before, last = messages
    return [*before, {**last, "content": last["content"] + END_MARK}]


def before_end_mark(rendered: str) -> str:
    """What a template wrote up to the mark. Raises ``InvalidRequest`` if it left the mark out."""
    text, mark, _ = rendered.rpartition(END_MARK)
    if not mark:
        raise InvalidRequest(
            "The model's chat template does not show the last message's text.",
            code="invalid_value",
            param="messages",
        )
    return text
