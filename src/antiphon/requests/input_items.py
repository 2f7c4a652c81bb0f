"""The input items of ``/v1/responses``: what a client may replay of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length
from antiphon.requests.tools import FunctionName

CallId = Annotated[str, Length(1, 64)]
Status = Literal["in_progress", "completed", "incomplete"]


@attrs.define(kw_only=True)
class InputText:
    """Text the user, the system or a tool wrote."""

    type: Literal["input_text"]
    text: str


@attrs.define(kw_only=True)
class OutputText:
    """Text of an earlier answer."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any] = attrs.field(factory=list)
    logprobs: list[Any] = attrs.field(factory=list)


@attrs.define(kw_only=True)
class RefusalText:
    """A refusal of an earlier answer."""

    type: Literal["refusal"]
    refusal: str


@attrs.define(kw_only=True)
class InputMessage:
    """A message; ``type`` may be left out."""

    type: Literal["message"] = "message"
    role: Literal["user", "system", "developer", "assistant"]
    content: str | Annotated[list[InputText | OutputText | RefusalText], Length(1)]
    id: str | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


@attrs.define(kw_only=True)
class FunctionCallItem:
    """An earlier call of the model."""

    type: Literal["function_call"]
    call_id: CallId
    name: FunctionName
    arguments: str
    id: str | None = None
    status: Status | None = None


@attrs.define(kw_only=True)
class FunctionCallOutputItem:
    """What the client's function answered; its call must come earlier."""

    type: Literal["function_call_output"]
    call_id: CallId
    output: str | list[InputText]
    id: str | None = None
    status: Status | None = None


@attrs.define(kw_only=True)
class CustomCallItem:
    """An earlier call of a tool that takes text."""

    type: Literal["custom_tool_call"]
    call_id: CallId
    name: FunctionName
    input: str
    id: str | None = None
    status: Status | None = None


@attrs.define(kw_only=True)
class CustomCallOutputItem:
    """What that tool answered; its call must come earlier."""

    type: Literal["custom_tool_call_output"]
    call_id: CallId
    output: str | list[InputText]
    id: str | None = None
    status: Status | None = None


@attrs.define(kw_only=True)
class ReasoningText:
    """Earlier reasoning in clear."""

    type: Literal["reasoning_text"]
    text: str


@attrs.define(kw_only=True)
class SummaryText:
    """A summary of earlier reasoning; never shown to the model."""

    type: Literal["summary_text"]
    text: str


@attrs.define(kw_only=True)
class ReasoningItem:
    """Earlier reasoning of the model."""

    type: Literal["reasoning"]
    summary: list[SummaryText]
    content: list[ReasoningText] = attrs.field(factory=list)
    encrypted_content: str | None = None
    id: str | None = None
    status: Status | None = None


@attrs.define(kw_only=True)
class ItemReference:
    """A stored item by its id; needs a store."""

    type: Literal["item_reference"]
    id: str


InputItem = (
    InputMessage
    | FunctionCallItem
    | FunctionCallOutputItem
    | CustomCallItem
    | CustomCallOutputItem
    | ReasoningItem
    | ItemReference
)


def check_items(items: list[InputItem]) -> None:
    """What no single item can tell. Raises ``InvalidRequest`` with the item's path."""
    calls: set[str] = set()
    customs: set[str] = set()
    for index, item in enumerate(items):
        if type(item) is InputMessage:  # most are
            continue
        match item:
            case FunctionCallItem(call_id=call_id):
                calls.add(call_id)
            case CustomCallItem(call_id=call_id):
                customs.add(call_id)
            case FunctionCallOutputItem(call_id=call_id) if call_id not in calls:
                raise _without_call("function", call_id, index)
            case CustomCallOutputItem(call_id=call_id) if call_id not in customs:
                raise _without_call("custom tool", call_id, index)
            case ItemReference():
                raise InvalidRequest(
                    "Item references need a store, and this server has none.",
                    code="unsupported_value",
                    param=f"input[{index}].type",
                )
            case _:
                pass


def _without_call(kind: str, call_id: str, index: int) -> InvalidRequest:
    return InvalidRequest(
        f"No earlier {kind} call has the call_id '{call_id}'.",
        code="invalid_function_call_output",
        param=f"input[{index}].call_id",
    )


def open_reasoning(items: list[InputItem], unseal: Callable[[str], str]) -> None:
    """Give the reasoning items that have only an envelope the text that is in it.

    ``unseal`` raises ``ValueError`` for an envelope that this server did not make: that becomes
    ``InvalidRequest`` (``invalid_encrypted_content``). Content in clear wins over an envelope.
    """
    for index, item in enumerate(items):
        if (
            isinstance(item, ReasoningItem)
            and not item.content
            and item.encrypted_content is not None
        ):
            try:
                text = unseal(item.encrypted_content)
            except ValueError:
                raise InvalidRequest(
                    "The encrypted reasoning was not made by this server.",
                    code="invalid_encrypted_content",
                    param=f"input[{index}].encrypted_content",
                ) from None
            item.content = [ReasoningText(type="reasoning_text", text=text)]
