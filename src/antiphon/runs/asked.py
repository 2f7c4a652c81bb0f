"""What a typed request asks of its run, as parts of a plan and of an answer."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from antiphon.engines.port import Capability
from antiphon.errors import InvalidRequest
from antiphon.requests.chat import ChatRequest
from antiphon.requests.generation import ChunkedRequest, GenerationRequest
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.template_names import template_variables
from antiphon.requests.tools import DeclaredTool, declared
from antiphon.runs.catalogue import FORCED, ServedModel
from antiphon.runs.tool_use import is_held_to_calls
from responsory.projections.padding import Draw
from responsory.segments import Spec, Tool, Tools
from responsory.segments.written import OwnGrammar

BUDGET = "thinking_token_budget"


class Reading(TypedDict):
    """The fields of a plan that say how the raw text of the answer is read."""

    stop: tuple[str, ...]
    include_stop: bool
    format: NotRequired[Spec]
    thinks: NotRequired[Spec]
    include_reasoning: bool
    shows_thought: bool
    thought_budget: int | None
    within: bool
    skip_special: bool
    tell_tokens: bool
    tokens_as_ids: bool
    prompt_ids: bool


def reading(request: GenerationRequest, model: ServedModel) -> Reading:
    """How the raw text of the answer is read. Raises ``InvalidRequest`` for a budget of thought
    that the model's engine cannot keep."""
    ids = isinstance(request, ChunkedRequest) and request.return_token_ids
    counted = isinstance(request, ChunkedRequest) and request.wants_running_usage
    talks = isinstance(request, ChatRequest | ResponseRequest)
    # What is to be left out is told from the text in any case. A completion is shown as it stands.
    apart = (talks and request.separate_reasoning) or not request.include_reasoning
    fields: Reading = {
        "stop": request.stop_strings,
        "include_stop": request.include_stop_str_in_output,
        "include_reasoning": request.include_reasoning,
        "shows_thought": talks and not apart,
        "thought_budget": _budget(request, model),
        "within": within(request),
        "skip_special": request.skip_special_tokens,
        "tell_tokens": ids or counted,
        "tokens_as_ids": request.return_tokens_as_token_ids,
        "prompt_ids": ids,
    }
    if isinstance(request, ChatRequest | ResponseRequest) and is_held_to_calls(model, request):
        # Calls in that form stand at the beginning alone, where a thought would be text.
        fields["format"] = model.format_when_forced if apart else FORCED
        if apart and _thinks(request, model):
            fields["thinks"] = model.format
        return fields
    if apart or talks:
        fields["format"] = model.format if apart else model.format_of_calls
    if _thinks(request, model):
        fields["thinks"] = model.format
    return fields


def within(request: GenerationRequest) -> bool:
    """Whether the answer goes on with a text that the client wrote, instead of a turn that the
    chat template has opened."""
    if isinstance(request, ChatRequest):
        return request.continue_final_message
    return not isinstance(request, ResponseRequest)


def unused_budget(request: GenerationRequest, model: ServedModel) -> list[str]:
    """The parameter of the budget, where there is no thought that it could end."""
    if request.thinking_token_budget is None or _budget(request, model) is not None:
        return []
    return [BUDGET]


def _budget(request: GenerationRequest, model: ServedModel) -> int | None:
    if request.thinking_token_budget is None:
        return None
    if Capability.THOUGHT_BUDGET not in model.info.capabilities:
        raise InvalidRequest(
            f"`{BUDGET}` is not supported by the model `{model.id}`.",
            code="unsupported_parameter",
            param=BUDGET,
        )
    thinks = model.marks_thought and _thinks(request, model)
    return request.thinking_token_budget if thinks else None


def _thinks(request: GenerationRequest, model: ServedModel) -> bool:
    """Whether reasoning is to be expected: as the request says, else as the model does unasked.

    In a completion it is text like any other, unless it is to be left out or to have an end.
    """
    if not isinstance(request, ChatRequest | ResponseRequest):
        return not request.include_reasoning or request.thinking_token_budget is not None
    told = {**template_variables(request.effort, None), **request.chat_template_kwargs}
    return bool(told.get("enable_thinking", told.get("thinking", model.thinks_unasked)))


def forced_calls(request: GenerationRequest) -> str | None:
    """The parameter that takes a call out of the model's free choice, if one does."""
    if not isinstance(request, ChatRequest | ResponseRequest) or request.choice.mode == "none":
        return None
    if request.choice.forced or request.choice.names:
        return "tool_choice"
    for tool in declared(request.tools):
        if tool.strict:
            return f"{tool.named.removesuffix('.name')}.strict"
        if tool.grammar is not None:
            return tool.place
    return None


class Calling(TypedDict):
    """The fields of a plan that say what becomes of calls."""

    calls: bool
    parallel_calls: bool
    tools: Tools
    callable: tuple[Tool, ...]
    calls_least: int


def calling(request: ChatRequest | ResponseRequest) -> Calling:
    """Whether and how calls are looked for in the raw text, and what may be called."""
    choice = request.choice
    tools = [_told(tool) for tool in declared(request.tools)]
    only = choice.names or None
    return {
        "calls": bool(tools) and choice.mode != "none",
        # Exactly the one that is named.
        "parallel_calls": request.parallel_tool_calls and choice.mode != "named",
        "tools": Tools(tools, only=only),
        "callable": tuple([tool for tool in tools if only is None or tool.name in only]),
        "calls_least": int(choice.forced),
    }


def _told(tool: DeclaredTool) -> Tool:
    """A declared tool as the reader of calls is told of it."""
    return Tool(
        tool.name,
        kind="custom" if tool.custom else "function",
        parameters=tool.parameters,
        strict=tool.strict,
        grammar=None if tool.grammar is None else OwnGrammar(*tool.grammar, tool.place),
        place=tool.place,
    )


class ShownTokens(TypedDict):
    """What an answer of chunks tells of its tokens beside their text."""

    include_usage: bool
    logprobs: bool
    continuous_usage: list[int] | None
    token_ids: bool
    tokens_as_ids: bool
    obfuscation: Draw | None


def shown_tokens(
    request: ChunkedRequest, prompts: Sequence[array[int]], *, logprobs: bool, pad: Draw
) -> ShownTokens:
    """What chat and completions tell alike; ``pad`` makes the padding of deltas."""
    counted = request.wants_running_usage
    return {
        "include_usage": request.wants_usage,
        "logprobs": logprobs,
        "continuous_usage": list(map(len, prompts)) if counted else None,
        "token_ids": request.return_token_ids,
        "tokens_as_ids": request.return_tokens_as_token_ids,
        "obfuscation": pad if request.wants_obfuscation else None,
    }
