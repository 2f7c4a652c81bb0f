"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between, Length, Offered, Only
from antiphon.requests.converter import structure
from antiphon.requests.generation import (
    ChunkedRequest,
    Effort,
    Verbosity,
    check_template_kwargs,
)
from antiphon.requests.messages import ChatMessage, check_messages, generation_prompt
from antiphon.requests.refusals import CHAT, refuse_unsupported
from antiphon.requests.tool_choice import ChatToolChoice, ToolChoice, check_tool_choice, normalised
from antiphon.requests.tools import ChatTool, check_tool_names


@attrs.define(kw_only=True)
class ReasoningEffort:
    """``reasoning``: the same as ``reasoning_effort``."""

    effort: Effort | None = None


@attrs.define(kw_only=True)
class ChatRequest(ChunkedRequest):
    """The body of a chat call."""

    without_effect: ClassVar[frozenset[str]] = frozenset({
        "store", "metadata", "prediction", "moderation", "service_tier", "session_id",
        "prompt_cache_key", "safety_identifier",
    })  # fmt: skip

    messages: Annotated[list[ChatMessage], Length(1)]
    max_completion_tokens: Annotated[int, Between(1)] | None = None
    max_tokens: Annotated[int, Between(1)] | None = None
    n: Annotated[int, Between(1, 128)] = 1
    logprobs: bool = False
    top_logprobs: Annotated[int, Between(0, 20)] | None = None
    tools: Annotated[list[ChatTool], Length(0, 128)] = attrs.field(factory=list)
    tool_choice: ChatToolChoice = "auto"
    parallel_tool_calls: bool = True
    modalities: list[Annotated[str, Offered(("text",))]] | None = None
    echo: Annotated[bool, Only(False)] = False
    add_generation_prompt: bool = True
    """False too when ``continue_final_message`` is given."""
    continue_final_message: bool = False
    documents: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] = attrs.field(factory=dict)
    add_special_tokens: bool = False
    verbosity: Verbosity | None = None
    reasoning_effort: Effort | None = None
    reasoning: ReasoningEffort | None = None

    @property
    def effort(self) -> Effort | None:
        """The reasoning effort asked for, in either form."""
        inner = None if self.reasoning is None else self.reasoning.effort
        return self.reasoning_effort or inner

    @property
    def choice(self) -> ToolChoice:
        """``tool_choice`` as one value."""
        return normalised(self.tool_choice)

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
    request.check(*request.token_limit)
    check_messages(request.messages)
    if request.top_logprobs is not None and not request.logprobs:
        raise InvalidRequest(
            "`top_logprobs` needs `logprobs: true`.", code="invalid_value", param="top_logprobs"
        )
    if request.reasoning is not None and request.reasoning.effort not in (None, request.effort):
        raise InvalidRequest(
            "`reasoning.effort` and `reasoning_effort` differ.",
            code="conflicting_parameters",
            param="reasoning",
        )
    request.add_generation_prompt = generation_prompt(
        body,
        request.messages,
        asked=request.add_generation_prompt,
        continued=request.continue_final_message,
    )
    check_template_kwargs(request.chat_template_kwargs)
    names = [tool.function.name for tool in request.tools]
    check_tool_names(names, "function.name")
    check_tool_choice(request.tool_choice, names, constrained=request.constraint is not None)
    return request
