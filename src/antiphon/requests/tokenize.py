"""The bodies of ``/tokenize`` (a prompt or a chat) and ``/detokenize``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.constraints import Length, Refused
from antiphon.requests.converter import structure
from antiphon.requests.generation import check_template_kwargs
from antiphon.requests.messages import ChatMessage, check_messages, generation_prompt
from antiphon.requests.token_ids import TokenIds
from antiphon.requests.tools import ChatTool, check_tool_names

ModelName = Annotated[str, Length(1)]


@attrs.define(kw_only=True)
class EncodePrompt(Body):
    """A text to tokenize; without a model it is the server's first."""

    model: ModelName | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool = False


@attrs.define(kw_only=True)
class EncodeChat(Body):
    """A conversation to render and tokenize, as a chat call would."""

    model: ModelName | None = None
    messages: Annotated[list[ChatMessage], Length(1)]
    tools: Annotated[list[ChatTool], Length(0, 128)] = attrs.field(factory=list)
    add_generation_prompt: bool = True
    """False too when ``continue_final_message`` is given."""
    continue_final_message: bool = False
    documents: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] = attrs.field(factory=dict)
    add_special_tokens: bool = False
    return_token_strs: bool = False
    chat_template: Annotated[Any, Refused()] = None
    mm_processor_kwargs: Annotated[Any, Refused()] = None


@attrs.define(kw_only=True)
class Decode(Body):
    """Token ids to turn into text."""

    model: ModelName | None = None
    tokens: Annotated[list[Any], TokenIds()]


def parse_encode(body: Mapping[str, Any]) -> EncodePrompt | EncodeChat:
    """The typed body, told apart by ``prompt`` and ``messages``. Raises ``InvalidRequest``."""
    if body.get("messages") is None:
        return structure(body, EncodePrompt)
    if body.get("prompt") is not None:
        raise InvalidRequest(
            "`prompt` and `messages` exclude each other.",
            code="conflicting_parameters",
            param="messages",
        )
    request = structure(body, EncodeChat)
    check_messages(request.messages)
    request.add_generation_prompt = generation_prompt(
        body,
        request.messages,
        asked=request.add_generation_prompt,
        continued=request.continue_final_message,
    )
    check_template_kwargs(request.chat_template_kwargs)
    check_tool_names([tool.function.name for tool in request.tools], "function.name")
    return request


def parse_decode(body: Mapping[str, Any]) -> Decode:
    """The typed body. Raises ``InvalidRequest``."""
    return structure(body, Decode)
