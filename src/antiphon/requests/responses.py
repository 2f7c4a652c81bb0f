"""``POST /v1/responses``, and the tail of the resource that echoes the request."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

import attrs

from antiphon.errors import InvalidRequest, NotFound
from antiphon.requests.body import MOST_NAMED
from antiphon.requests.constraints import Between, Length, Only, Pattern, Refused
from antiphon.requests.converter import structure
from antiphon.requests.faults import quoted
from antiphon.requests.generation import GenerationRequest
from antiphon.requests.input_items import InputItem, check_items
from antiphon.requests.refusals import RESPONSES
from antiphon.requests.structured import Constraint, FreeText, TextFormat, of_format
from antiphon.requests.template_names import (
    Effort,
    TemplateKwargs,
    Verbosity,
    check_template_kwargs,
)
from antiphon.requests.tool_choice import (
    ResponseToolChoice,
    ToolChoice,
    check_tool_choice,
    normalised,
)
from antiphon.requests.tools import CustomTool, FunctionTool, check_tools, declared

LOGPROBS_INCLUDE = "message.output_text.logprobs"
ENVELOPE_INCLUDE = "reasoning.encrypted_content"
Include = Literal[
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
]


@attrs.define(kw_only=True)
class TextOptions:
    """``text``: the format of the answer."""

    format: TextFormat = attrs.field(factory=lambda: FreeText(type="text"))
    verbosity: Verbosity | None = None


@attrs.define(kw_only=True)
class ReasoningOptions:
    """``reasoning``: the effort reaches the chat template, the rest is echoed."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: Annotated[Any, Refused()] = None
    mode: Annotated[Any, Refused()] = None


@attrs.define(kw_only=True)
class ResponseRequest(GenerationRequest):
    """The body of a create call, and of a count of its input tokens."""

    refused: ClassVar[Mapping[str, str]] = RESPONSES
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {"prompt_cache_options", "prediction", "session_id", "stream_options.include_usage"}
    )

    input: str | Annotated[list[InputItem], Length(1)]
    instructions: str | None = None
    max_output_tokens: Annotated[int, Between(1)] | None = None
    tools: Annotated[list[FunctionTool | CustomTool], Length(0, 128)] = attrs.field(factory=list)
    tool_choice: ResponseToolChoice = "auto"
    parallel_tool_calls: bool = True
    text: TextOptions = attrs.field(factory=TextOptions)
    reasoning: ReasoningOptions | None = None
    include: list[Include] = attrs.field(factory=list)
    top_logprobs: Annotated[int, Between(0, 20)] = 0
    previous_response_id: Annotated[str, Pattern(r"resp_.+")] | None = None
    store: bool = True
    background: Annotated[bool, Only(False)] = False
    truncation: Literal["disabled", "auto"] = "disabled"
    metadata: Annotated[
        dict[str, Annotated[str, Length(0, 512)]],
        Length(0, 16),
    ] = attrs.field(factory=dict)
    max_tool_calls: Annotated[int, Between(1)] | None = None
    service_tier: Literal["auto", "default", "flex", "priority", "scale"] = "default"
    prompt_cache_key: Annotated[str, Length(0, 64)] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: Annotated[str, Length(0, 128)] | None = None
    chat_template_kwargs: TemplateKwargs = attrs.field(factory=dict)
    add_special_tokens: bool = False

    @property
    def effort(self) -> Effort | None:
        """The reasoning effort asked for."""
        return None if self.reasoning is None else self.reasoning.effort

    @property
    def verbosity(self) -> Verbosity | None:
        """The verbosity asked for."""
        return self.text.verbosity

    @property
    def logprobs(self) -> int | None:
        """Alternatives per token, or None for no logprobs at all."""
        asked = self.top_logprobs > 0 or LOGPROBS_INCLUDE in self.include
        return self.top_logprobs if asked else None

    @property
    def choice(self) -> ToolChoice:
        """``tool_choice`` as one value."""
        return normalised(self.tool_choice)

    @property
    def wants_envelope(self) -> bool:
        """Whether reasoning items come with ``encrypted_content``."""
        return ENVELOPE_INCLUDE in self.include

    def formats(self) -> list[Constraint]:
        return of_format(self.text.format, "text.format")


def parse_response(body: Mapping[str, Any]) -> ResponseRequest:
    """The typed request. Raises ``InvalidRequest`` or ``NotFound``."""
    request = structure(body, ResponseRequest)
    request.check(request.max_output_tokens, "max_output_tokens")
    if isinstance(request.input, list):
        check_items(request.input)
    elif not request.input:
        raise InvalidRequest("Invalid `input`: it is empty.", code="invalid_value", param="input")
    unused = (
        f"include[{index}]"
        for index, value in enumerate(request.include)
        if value not in (LOGPROBS_INCLUDE, ENVELOPE_INCLUDE)
    )
    request.ignored += islice(unused, MOST_NAMED)
    request.unnamed += sum(1 for _ in unused)
    request.keep_the_first()
    for key in request.metadata:
        if len(key) > 64:
            raise InvalidRequest(
                "Invalid `metadata`: a key has more than 64 characters.",
                code="string_above_max_length",
                param=f"metadata.{key}",
            )
    if request.previous_response_id is not None:
        raise NotFound(
            f"Previous response {quoted(request.previous_response_id)} not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    check_template_kwargs(request.chat_template_kwargs)
    tools = declared(request.tools)
    check_tools(tools)
    check_tool_choice(request.tool_choice, tools, constrained=request.constraint is not None)
    return request


def resource_tail(request: ResponseRequest) -> dict[str, Any]:
    """The keys of the response resource that only echo the request, in the order sent.

    ``store`` says whether the response really is kept; without a store it is false.
    """
    text: dict[str, Any] = {"format": _shown(request.text.format)}
    if request.text.verbosity is not None:
        text["verbosity"] = request.text.verbosity
    reasoning = request.reasoning
    return {
        "model": request.model,
        "previous_response_id": request.previous_response_id,
        "instructions": request.instructions,
        "tools": [attrs.asdict(tool) for tool in request.tools],
        "tool_choice": _shown(request.tool_choice),
        "parallel_tool_calls": request.parallel_tool_calls,
        "text": text,
        "reasoning": None
        if reasoning is None
        else {
            "effort": reasoning.effort,
            "summary": reasoning.summary or reasoning.generate_summary,
        },
        "truncation": request.truncation,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "presence_penalty": request.presence_penalty,
        "frequency_penalty": request.frequency_penalty,
        "top_logprobs": request.top_logprobs,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "store": False,
        "background": request.background,
        "service_tier": "default",
        "metadata": request.metadata,
        "user": request.user,
        "safety_identifier": request.safety_identifier,
        "prompt_cache_key": request.prompt_cache_key,
        "prompt_cache_retention": request.prompt_cache_retention,
    }


def _shown(value: Any) -> Any:
    """A typed part of the request as the JSON value it came as."""
    return attrs.asdict(value) if attrs.has(type(value)) else value
