"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.chat_prompt import ChatPrompt
from antiphon.requests.constraints import Between, Length, Offered, Only
from antiphon.requests.converter import structure
from antiphon.requests.generation import ChunkedRequest
from antiphon.requests.refusals import CHAT
from antiphon.requests.template_names import Effort, Verbosity
from antiphon.requests.tool_choice import ChatToolChoice, ToolChoice, check_tool_choice, normalised
from antiphon.requests.tools import declared


@attrs.define(kw_only=True)
class ReasoningEffort:
    """``reasoning``: the same as ``reasoning_effort``."""

    effort: Effort | None = None


@attrs.define(kw_only=True)
class ChatRequest(ChatPrompt, ChunkedRequest):
    """The body of a chat call."""

    refused: ClassVar[Mapping[str, str]] = CHAT
    without_effect: ClassVar[frozenset[str]] = frozenset({
        "store", "metadata", "prediction", "moderation", "service_tier", "session_id",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
    })  # fmt: skip

    max_completion_tokens: Annotated[int, Between(1)] | None = None
    max_tokens: Annotated[int, Between(1)] | None = None
    n: Annotated[int, Between(1, 128)] = 1
    logprobs: bool = False
    top_logprobs: Annotated[int, Between(0, 20)] | None = None
    tool_choice: ChatToolChoice = "auto"
    parallel_tool_calls: bool = True
    modalities: Annotated[list[Annotated[str, Offered(("text",))]], Length(1)] | None = None
    echo: Annotated[bool, Only(False)] = False
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
    request = structure(body, ChatRequest)
    request.check(*request.token_limit)
    request.check_prompt(body)
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
    check_tool_choice(
        request.tool_choice, declared(request.tools), constrained=request.constraint is not None
    )
    return request
