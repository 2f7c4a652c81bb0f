"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between, Length, Offered, Only
from antiphon.requests.converter import structure
from antiphon.requests.generation import (
    Effort,
    GenerationRequest,
    ResponseFormat,
    Verbosity,
    check_response_format,
    check_template_kwargs,
)
from antiphon.requests.refusals import CHAT, refuse_unsupported
from antiphon.requests.structure_hooks import missing
from antiphon.requests.tools import ChatTool, ToolChoice, check_tool_choice, check_tool_names


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

    type: Annotated[str, Offered(("function",))]
    id: str
    function: CalledFunction


@attrs.define(kw_only=True)
class ChatMessage:
    """One message of the history; which fields matter depends on its role."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[TextPart | RefusalPart], Length(1)] | None = None
    name: str | None = None
    tool_calls: Annotated[list[ToolCall], Length(1)] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    function_call: dict[str, Any] | None = None


@attrs.define(kw_only=True)
class ReasoningEffort:
    """``reasoning``: the same as ``reasoning_effort``."""

    effort: Effort | None = None


@attrs.define(kw_only=True)
class ChatRequest(GenerationRequest):
    """The body of a chat call."""

    messages: Annotated[list[ChatMessage], Length(1)]
    max_completion_tokens: Annotated[int, Between(1)] | None = None
    max_tokens: Annotated[int, Between(1)] | None = None
    n: Annotated[int, Between(1, 128)] = 1
    logprobs: bool = False
    top_logprobs: Annotated[int, Between(0, 20)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[ChatTool], Length(0, 128)] = attrs.field(factory=list)
    tool_choice: ToolChoice | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    modalities: list[Annotated[str, Offered(("text",))]] | None = None
    echo: Annotated[bool, Only(False)] = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] = attrs.field(factory=dict)
    add_special_tokens: Annotated[bool, Only(False)] = False
    verbosity: Verbosity | None = None
    reasoning_effort: Effort | None = None
    reasoning: ReasoningEffort | None = None

    @property
    def effort(self) -> Effort | None:
        """The reasoning effort asked for, in either form."""
        inner = None if self.reasoning is None else self.reasoning.effort
        return self.reasoning_effort or inner

    @property
    def token_limit(self) -> tuple[int | None, str]:
        """The limit on output tokens and the name of the field that gave it."""
        if self.max_completion_tokens is not None:
            return self.max_completion_tokens, "max_completion_tokens"
        return self.max_tokens, "max_tokens"


def parse_chat(body: Mapping[str, Any]) -> ChatRequest:
    """The typed request. Raises ``InvalidRequest``."""
    refuse_unsupported(body, CHAT)
    request = structure(body, ChatRequest)
    request.check()
    for index, message in enumerate(request.messages):
        _check_message(message, f"messages[{index}]")
    if request.top_logprobs is not None and not request.logprobs:
        raise InvalidRequest(
            "`top_logprobs` needs `logprobs: true`.", code="invalid_value", param="top_logprobs"
        )
    check_response_format(request.response_format)
    if request.reasoning is not None and request.reasoning.effort not in (None, request.effort):
        raise InvalidRequest(
            "`reasoning.effort` and `reasoning_effort` differ.",
            code="conflicting_parameters",
            param="reasoning",
        )
    if request.continue_final_message:
        raise InvalidRequest(
            "`continue_final_message` is not supported by this server.",
            code="unsupported_value",
            param="continue_final_message",
        )
    check_template_kwargs(request.chat_template_kwargs)
    names = [tool.function.name for tool in request.tools]
    check_tool_names(names, "function.name")
    check_tool_choice(request.tool_choice, names)
    return request


def _check_message(message: ChatMessage, path: str) -> None:
    if message.role == "function" or message.function_call is not None:
        place = "role" if message.role == "function" else "function_call"
        raise InvalidRequest(
            f"Invalid `{path}.{place}`: use `tool_calls` and the role 'tool'.",
            code="unsupported_value",
            param=f"{path}.{place}",
        )
    if message.content is None and message.role != "assistant":
        raise missing(f"{path}.content")
    if message.role == "tool" and message.tool_call_id is None:
        raise missing(f"{path}.tool_call_id")
    if message.tool_calls and message.role != "assistant":
        raise InvalidRequest(
            f"Invalid `{path}.tool_calls`: only an assistant message has calls.",
            code="invalid_value",
            param=f"{path}.tool_calls",
        )
