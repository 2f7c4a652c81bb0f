"""From a typed request to the token ids of its prompts, with the model's own means."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.prompting.conversation import Message, chat_messages, response_messages
from antiphon.requests.chat import ChatRequest
from antiphon.requests.completions import CompletionRequest
from antiphon.requests.generation import template_variables
from antiphon.requests.responses import ResponseRequest
from antiphon.runs.catalogue import ServedModel


def completion_prompts(model: ServedModel, request: CompletionRequest) -> list[array[int]]:
    """One prompt per string or list of ids. Raises ``InvalidRequest``."""
    for prompt in request.prompts:
        if isinstance(prompt, str):
            _check_size(model, len(prompt), "prompt")
    return [
        model.prompter.text(prompt, add_special_tokens=request.add_special_tokens)
        if isinstance(prompt, str)
        else model.prompter.ids(prompt)
        for prompt in request.prompts
    ]


def chat_prompt(model: ServedModel, request: ChatRequest) -> array[int]:
    """The conversation through the chat template. Raises ``InvalidRequest``."""
    messages = chat_messages(request.messages)
    return _render(model, request, messages, "messages", request.add_generation_prompt)


def response_prompt(model: ServedModel, request: ResponseRequest) -> array[int]:
    """Instructions and input items through the chat template. Raises ``InvalidRequest``."""
    return _render(model, request, response_messages(request), "input", True)


def check_tools(model: ServedModel, tools: Sequence[object]) -> None:
    """Raises ``InvalidRequest`` when the model cannot be shown tools."""
    if tools and not model.prompter.takes_tools:
        raise InvalidRequest(
            f"The model `{model.id}` cannot use tools on this server.",
            code="unsupported_parameter",
            param="tools",
        )


def unused_settings(model: ServedModel, request: ChatRequest | ResponseRequest) -> list[str]:
    """What the request asks of the chat template that this model's template knows nothing of."""
    known = model.prompter.variables
    of_chat = isinstance(request, ChatRequest)
    unused = []
    if (names := template_variables(request.effort, None).keys()) and not names & known:
        unused.append("reasoning_effort" if of_chat else "reasoning.effort")
    if request.verbosity is not None and "verbosity" not in known:
        unused.append("verbosity" if of_chat else "text.verbosity")
    return unused


MOST_SHRINKING = 3
"""Characters that normalisation may make one of (three Hangul letters a syllable: NFC)."""


def _check_size(model: ServedModel, characters: int, param: str) -> None:
    """Refuse without tokenising what cannot fit the context however it is tokenised."""
    context = model.info.context_length
    if characters > MOST_SHRINKING * context * model.prompter.longest_token:
        raise InvalidRequest(
            f"This prompt has {characters} characters and is longer than the model's context "
            f"length of {context} tokens allows.",
            code="context_length_exceeded",
            param=param,
        )


def _render(
    model: ServedModel,
    request: ChatRequest | ResponseRequest,
    messages: Sequence[Message],
    param: str,
    add_generation_prompt: bool,
) -> array[int]:
    _check_size(model, sum(len(message["content"]) for message in messages), param)
    variables: dict[str, Any] = {
        **template_variables(request.effort, request.verbosity),
        **request.chat_template_kwargs,
    }
    try:
        return model.prompter.chat(
            messages, add_generation_prompt=add_generation_prompt, extra=variables
        )
    except InvalidRequest as refusal:
        raise InvalidRequest(refusal.message, code=refusal.code, param=param) from None
