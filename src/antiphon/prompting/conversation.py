"""A request's history as the messages a chat template renders.

Chat messages and Responses items lead to the same list, so that a conversation gives the same
prompt on both endpoints. A message is a dict with ``role`` and ``content`` (a string), and where
they apply ``name``, ``phase``, ``tool_calls``, ``tool_call_id`` and ``reasoning_content``. Outputs
of calls come in the order of the calls, each with the name of its tool.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.prompting.tool_turns import in_call_order
from antiphon.requests.chat import ChatRequest
from antiphon.requests.input_items import (
    CustomCallItem,
    CustomCallOutputItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputItem,
    InputMessage,
    ReasoningItem,
    RefusalText,
)
from antiphon.requests.json_body import parse_object
from antiphon.requests.messages import ChatMessage, CustomToolCall, RefusalPart, ToolCall
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.tools import AnyTool, DeclaredTool, declared

Message = dict[str, Any]

# Templates know no developer role; the API gives it the place of the system role.
_ROLES = {"developer": "system"}


def chat_messages(messages: Sequence[ChatMessage]) -> list[Message]:
    """The history of a chat call, in order."""
    return in_call_order([_chat_message(message) for message in messages])


def response_messages(
    request: ResponseRequest, items: Sequence[InputItem] | None = None
) -> list[Message]:
    """Instructions and input items of a Responses call, in order; of ``items`` instead, if given.

    What one answer said in several items is one assistant message, as chat has it: its text, its
    calls, text behind them, and reasoning wherever it stood. Only text behind text is another.
    """
    history: list[Message] = []
    if request.instructions is not None:
        history.append({"role": "system", "content": request.instructions})
    if isinstance(request.input, str):
        return [*history, {"role": "user", "content": request.input}]
    reasoning = ""
    for item in request.input if items is None else items:
        if isinstance(item, ReasoningItem):
            reasoning += "".join(part.text for part in item.content)
            continue
        before = history[-1:]
        _append_item(history, item)
        _append_reasoning([*before, history[-1]], reasoning)
        reasoning = ""
    _append_reasoning(history, reasoning)
    return in_call_order(history)


def shown_tools(request: ChatRequest | ResponseRequest) -> list[dict[str, Any]] | None:
    """The tools that the model is to see, as templates read them; None where there are none."""
    return None if request.tool_choice == "none" else as_shown(request.tools)


def as_shown(tools: Sequence[AnyTool]) -> list[dict[str, Any]] | None:
    """Tools as templates read them, the same for both endpoints; None for none.

    ``strict`` is the server's to keep and no word to the model. Templates know no tools that take
    text: one is shown as a function of one string.
    """
    shown = []
    for tool in declared(tools):
        fields: dict[str, Any] = {"description": tool.description, "parameters": tool.parameters}
        if tool.custom:
            fields["parameters"] = _custom_parameters(tool)
        given = {key: value for key, value in fields.items() if value is not None}
        shown.append({"type": "function", "function": {"name": tool.name, **given}})
    return shown or None


def _custom_parameters(tool: DeclaredTool) -> dict[str, Any]:
    words = "The input of the tool, as free text."
    if tool.grammar is not None:
        syntax, definition = tool.grammar
        words = f"The input of the tool: text that holds to this {syntax} grammar:\n{definition}"
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": words}},
        "required": ["input"],
    }


def _append_reasoning(messages: Sequence[Message], reasoning: str) -> None:
    """To what follows it, if that is the assistant's, else to what stands before it."""
    if reasoning:
        for message in [each for each in messages[-2:] if each["role"] == "assistant"][-1:]:
            message["reasoning_content"] = message.get("reasoning_content", "") + reasoning


def _append_item(history: list[Message], item: InputItem) -> None:
    match item:
        case InputMessage(role="assistant") if _goes_on(history, item):
            history[-1]["content"] += _text(item)
        case InputMessage():
            message: Message = {"role": _ROLES.get(item.role, item.role), "content": _text(item)}
            if item.phase is not None:
                message["phase"] = item.phase
            history.append(message)
        case FunctionCallItem():
            _append_call(history, _call(item.call_id, item.name, item.arguments))
        case CustomCallItem():
            _append_call(history, _custom_call(item.call_id, item.name, item.input))
        case FunctionCallOutputItem(output=output) | CustomCallOutputItem(output=output):
            text = output if isinstance(output, str) else "".join(part.text for part in output)
            history.append({"role": "tool", "content": text, "tool_call_id": item.call_id})
        case _:  # references are refused before, reasoning is gathered by the caller
            raise AssertionError(item)


def _goes_on(history: Sequence[Message], item: InputMessage) -> bool:
    """Whether the text belongs to a message whose calls wait for their outputs."""
    last = history[-1] if history else {}
    return "tool_calls" in last and (item.phase is None or item.phase == last.get("phase"))


def _append_call(history: list[Message], call: dict[str, Any]) -> None:
    if not history or history[-1]["role"] != "assistant":
        history.append({"role": "assistant", "content": ""})
    history[-1].setdefault("tool_calls", []).append(call)


def _chat_message(message: ChatMessage) -> Message:
    content = message.content
    if isinstance(content, list):
        content = "".join(
            part.refusal if isinstance(part, RefusalPart) else part.text for part in content
        )
    result: Message = {
        "role": _ROLES.get(message.role, message.role),
        "content": content or message.refusal or "",
    }
    if message.name is not None:
        result["name"] = message.name
    if message.phase is not None:
        result["phase"] = message.phase
    if message.tool_calls:
        result["tool_calls"] = [_chat_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        result["tool_call_id"] = message.tool_call_id
    if (reasoning := message.reasoning_content or message.reasoning) is not None:
        result["reasoning_content"] = reasoning
    return result


def _chat_call(call: ToolCall | CustomToolCall) -> dict[str, Any]:
    if isinstance(call, CustomToolCall):
        return _custom_call(call.id, call.custom.name, call.custom.input)
    return _call(call.id, call.function.name, call.function.arguments)


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Arguments as the object they spell, for templates that write them anew; else as text.

    What could not stand in a body of ours, by its depth for one, is text. None are an empty object.
    """
    text = "{}" if arguments.strip() in ("", "null") else arguments
    spelled: dict[str, Any] | str = text
    with suppress(InvalidRequest):
        spelled = parse_object(text.encode())
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": spelled},
    }


def _custom_call(call_id: str, name: str, text: str) -> dict[str, Any]:
    """As a model writes a call of a tool that takes text: of a function of one string."""
    return _call(call_id, name, json.dumps({"input": text}, ensure_ascii=False))


def _text(item: InputMessage) -> str:
    if isinstance(item.content, str):
        return item.content
    return "".join(
        part.refusal if isinstance(part, RefusalText) else part.text for part in item.content
    )
