"""From a typed request to the token ids of its prompts, with the model's own means."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from antiphon.errors import InvalidRequest
from antiphon.prompting.conversation import (
    Message,
    as_shown,
    chat_messages,
    response_messages,
    shown_tools,
)
from antiphon.prompting.told_tools import with_told_tools
from antiphon.prompting.truncation import without_oldest
from antiphon.requests.chat import ChatRequest
from antiphon.requests.completions import CompletionRequest
from antiphon.requests.input_items import InputItem, InputMessage
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.template_names import template_variables
from antiphon.requests.tokenize import EncodeChat, EncodePrompt
from antiphon.runs.call_example import spelled_call
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.places import placed
from antiphon.runs.plan import EchoedPrompt
from antiphon.runs.tool_use import check_tools, has_own_form

TOO_LONG = "context_length_exceeded"
MOST_SHRINKING = 3
"""Characters that normalisation may make one of (three Hangul letters a syllable: NFC)."""


def completion_prompts(model: ServedModel, request: CompletionRequest) -> list[array[int]]:
    """One prompt per string or list of ids. Raises ``InvalidRequest``."""
    alone = len(request.prompts) == 1
    prompts = []
    for index, given in enumerate(request.prompts):
        place = "prompt" if alone else f"prompt[{index}]"
        if isinstance(given, str):
            _check_size(model, len(given), place)
        with placed("prompt", place):
            prompt = (
                model.prompter.text(given, add_special_tokens=request.add_special_tokens)
                if isinstance(given, str)
                else model.prompter.ids(given)
            )
        prompts.append(prompt)
    return prompts


def echoed_prompts(
    model: ServedModel, request: CompletionRequest, prompts: Sequence[array[int]]
) -> list[EchoedPrompt]:
    """The prompts as an answer can begin with them: as they were sent, ids as their text."""
    return [
        EchoedPrompt(text=given, unseen=_unseen(model, given, ids))
        if isinstance(given, str)
        else EchoedPrompt(text=model.prompter.decode(given))
        for given, ids in zip(request.prompts, prompts, strict=True)
    ]


def _unseen(model: ServedModel, text: str, ids: array[int]) -> int:
    """How many ids were put before those of the text itself."""
    inner = model.prompter.text(text, add_special_tokens=False)
    return next(
        (
            start
            for start in range(len(ids) - len(inner) + 1)
            if ids[start : start + len(inner)] == inner
        ),
        0,
    )


def chat_prompt(model: ServedModel, request: ChatRequest) -> array[int]:
    """The conversation through the chat template. Raises ``InvalidRequest``."""
    return _chat(model, request, shown_tools(request), _variables(request))


def chat_tokens(model: ServedModel, request: EncodeChat) -> array[int]:
    """The same for a conversation that is only to be tokenized. Raises ``InvalidRequest``."""
    check_tools(model, request)
    if not model.prompter.writes_prompts:
        raise InvalidRequest(
            f"The model `{model.id}` is a recording and has no chat template.",
            code="unsupported_parameter",
            param="messages",
        )
    return _chat(model, request, as_shown(request.tools), request.chat_template_kwargs)


def text_tokens(model: ServedModel, request: EncodePrompt) -> array[int]:
    """The ids of a text. Raises ``InvalidRequest``."""
    _check_size(model, len(request.prompt), "prompt")
    return model.prompter.encode(request.prompt, add_special_tokens=request.add_special_tokens)


def _chat(
    model: ServedModel,
    request: ChatRequest | EncodeChat,
    tools: list[dict[str, Any]] | None,
    variables: dict[str, Any],
) -> array[int]:
    if request.documents is not None:
        if not model.prompter.takes_documents:
            raise InvalidRequest(
                f"The chat template of `{model.id}` shows no documents.",
                code="unsupported_parameter",
                param="documents",
            )
        variables = {**variables, "documents": request.documents}
    return _render(
        model,
        chat_messages(request.messages),
        "messages",
        add_generation_prompt=request.add_generation_prompt,
        continue_final=request.continue_final_message,
        add_special_tokens=request.add_special_tokens,
        tools=tools,
        extra=variables,
    )


def response_prompt(model: ServedModel, request: ResponseRequest) -> array[int]:
    """Instructions and input items through the chat template. Raises ``InvalidRequest``.

    With ``truncation: auto`` the oldest items are left out as far as need be.
    """

    def write(messages: Sequence[Message]) -> array[int]:
        return _render(
            model,
            messages,
            "input",
            add_special_tokens=request.add_special_tokens,
            tools=shown_tools(request),
            extra=_variables(request),
        )

    if request.truncation != "auto":
        return write(response_messages(request))
    given = request.input
    if isinstance(given, str):
        given = [InputMessage(role="user", content=given)]
    context = model.info.context_length

    def write_if_it_fits(items: Sequence[InputItem], room: int) -> array[int] | None:
        try:
            prompt = write(response_messages(request, items))
        except InvalidRequest as refusal:
            # Without some of its messages, a template may refuse a conversation.
            if len(items) == len(given) and refusal.code != TOO_LONG:
                raise
            return None
        return prompt if len(prompt) <= room else None

    # Where no room can be made for all of the limit, it is the limit that is cut.
    for answer in (request.max_output_tokens or 1, 1):
        prompt = without_oldest(given, partial(write_if_it_fits, room=context - answer))
        if prompt is not None:
            return prompt
    raise InvalidRequest(
        f"The input is longer than the model's context length of {context} tokens allows, even "
        "without all that may be left out.",
        code=TOO_LONG,
        param="input",
    )


def unused_variables(model: ServedModel, variables: Mapping[str, Any]) -> list[str]:
    """The names of ``chat_template_kwargs`` that this model's template does not read."""
    return [f"chat_template_kwargs.{name}" for name in variables.keys() - model.prompter.variables]


def unused_settings(model: ServedModel, request: ChatRequest | ResponseRequest) -> list[str]:
    """What the request asks of the chat template that this model's template knows nothing of."""
    known = model.prompter.variables
    of_chat = isinstance(request, ChatRequest)
    unused = unused_variables(model, request.chat_template_kwargs)
    if (names := template_variables(request.effort, None).keys()) and not names & known:
        unused.append("reasoning_effort" if of_chat else "reasoning.effort")
    if request.verbosity is not None and "verbosity" not in known:
        unused.append("verbosity" if of_chat else "text.verbosity")
    return unused


def _check_size(model: ServedModel, characters: int, param: str) -> None:
    """Refuse without tokenising what cannot fit the context however it is tokenised."""
    context = model.info.context_length
    if characters > MOST_SHRINKING * context * model.prompter.longest_token:
        raise InvalidRequest(
            f"This prompt has {characters} characters and is longer than the model's context "
            f"length of {context} tokens allows.",
            code=TOO_LONG,
            param=param,
        )


def _variables(request: ChatRequest | ResponseRequest) -> dict[str, Any]:
    return {
        **template_variables(request.effort, request.verbosity),
        **request.chat_template_kwargs,
    }


def _render(
    model: ServedModel,
    messages: Sequence[Mapping[str, Any]],
    param: str,
    *,
    add_generation_prompt: bool = True,
    continue_final: bool = False,
    add_special_tokens: bool,
    tools: Sequence[Mapping[str, Any]] | None,
    extra: Mapping[str, Any],
) -> array[int]:
    _check_size(model, sum(len(message["content"]) for message in messages), param)
    prompter = model.prompter
    if not (prompter.takes_tools and prompter.shows_calls):
        spec = model.format if has_own_form(model) else model.format_when_forced
        messages = with_told_tools(
            messages,
            None if prompter.takes_tools else tools,
            call=spelled_call(spec),
            calls_as_text=not prompter.shows_calls,
            role="system" if prompter.takes_system else "user",
        )
        tools = tools if prompter.takes_tools else None
    with placed("messages", param):
        return prompter.chat(
            messages,
            add_generation_prompt=add_generation_prompt,
            continue_final=continue_final,
            add_special_tokens=add_special_tokens,
            tools=tools,
            extra=extra,
        )
