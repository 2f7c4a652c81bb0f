"""The messages of a chat: what a client may replay of a conversation."""

from __future__ import annotations

from collections.abc import Container
from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length, Refused
from antiphon.requests.faults import MISSING, at


@attrs.define(kw_only=True)
class TextPart:
    """A piece of a message's text."""

    type: Literal["text"]
    text: str


@attrs.define(kw_only=True)
class RefusalPart:
    """A refusal in the history."""

    type: Literal["refusal"]
    refusal: str


@attrs.define(kw_only=True)
class CalledFunction:
    """Name and arguments (JSON text) of an earlier call."""

    name: str
    arguments: str


@attrs.define(kw_only=True)
class ToolCall:
    """A call of the history, in an assistant message."""

    type: Literal["function"]
    id: str
    function: CalledFunction


@attrs.define(kw_only=True)
class CalledCustom:
    """Name and input of an earlier call of a tool that takes text."""

    name: str
    input: str


@attrs.define(kw_only=True)
class CustomToolCall:
    """Such a call of the history."""

    type: Literal["custom"]
    id: str
    custom: CalledCustom


@attrs.define(kw_only=True)
class ChatMessage:
    """One message of the history; which fields matter depends on its role."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[TextPart | RefusalPart], Length(1)] | None = None
    name: str | None = None
    tool_calls: Annotated[list[ToolCall | CustomToolCall], Length(1)] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    phase: Literal["commentary", "final_answer"] | None = None
    """Of an assistant's text, where its family tells; for templates that know it."""
    function_call: dict[str, Any] | None = None
    annotations: list[Any] | None = None
    """Part of an answer that is replayed; not shown to the model."""
    audio: Annotated[Any, Refused()] = None


def check_messages(messages: list[ChatMessage]) -> None:
    """What no single field can tell. Raises ``InvalidRequest`` with the message's path."""
    calls: set[str] = set()
    for index, message in enumerate(messages):
        calls.update(call.id for call in message.tool_calls or ())
        try:
            _check_message(message, calls)
        except InvalidRequest as error:
            raise at(f"messages[{index}]", error) from None


def _check_message(message: ChatMessage, calls: Container[str]) -> None:
    """``calls``: the ids of those up to here."""
    if message.role == "function" or message.function_call is not None:
        raise InvalidRequest(
            "Use `tools`, `tool_calls` and the role 'tool'.",
            code="unsupported_value",
            param="role" if message.role == "function" else "function_call",
        )
    if message.content is None and message.role != "assistant":
        raise InvalidRequest("It is missing.", code=MISSING, param="content")
    if message.role == "tool" and message.tool_call_id is None:
        raise InvalidRequest("It is missing.", code=MISSING, param="tool_call_id")
    if message.role == "tool" and message.tool_call_id not in calls:
        raise InvalidRequest(
            f"No earlier call has the id '{message.tool_call_id}'.",
            code="invalid_function_call_output",
            param="tool_call_id",
        )
    if message.tool_calls and message.role != "assistant":
        raise InvalidRequest(
            "Only an assistant message has calls.", code="invalid_value", param="tool_calls"
        )
