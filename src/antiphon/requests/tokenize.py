"""The bodies of ``/tokenize`` (a prompt or a chat) and ``/detokenize``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.chat_prompt import ChatPrompt
from antiphon.requests.constraints import Length, Refused
from antiphon.requests.converter import structure
from antiphon.requests.generation import ChunkedRequest
from antiphon.requests.refusals import ANYWHERE, DETOKENIZED, TOKENIZED_CHAT, TOKENIZED_PROMPT
from antiphon.requests.token_ids import TokenIds

ModelName = Annotated[str, Length(1)]

OF_ANSWERS: frozenset[str] = frozenset({
    *(field.name for field in attrs.fields(ChunkedRequest) if field.init),
    "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "echo", "logprobs",
    "top_logprobs", "parallel_tool_calls", "max_tool_calls", "modalities", "include", "background",
    "store", "metadata", "prediction", "moderation", "service_tier", "session_id",
    "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
    *ANYWHERE,
} - {"model", "tokens", "return_token_strs", *TOKENIZED_PROMPT})  # fmt: skip
"""What decides how an answer is made, and not which ids a text has.

A client may have its chat counted by sending the body of the chat as it is.
"""


@attrs.define(kw_only=True)
class EncodePrompt(Body):
    """A text to tokenize; without a model it is the server's first."""

    refused: ClassVar[Mapping[str, str]] = TOKENIZED_PROMPT
    without_effect: ClassVar[frozenset[str]] = OF_ANSWERS

    model: ModelName | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool = False


@attrs.define(kw_only=True)
class EncodeChat(ChatPrompt):
    """A conversation to render and tokenize, as a chat call would."""

    refused: ClassVar[Mapping[str, str]] = TOKENIZED_CHAT
    without_effect: ClassVar[frozenset[str]] = OF_ANSWERS

    model: ModelName | None = None
    return_token_strs: bool = False
    chat_template: Annotated[Any, Refused()] = None
    mm_processor_kwargs: Annotated[Any, Refused()] = None


@attrs.define(kw_only=True)
class Decode(Body):
    """Token ids to turn into text."""

    refused: ClassVar[Mapping[str, str]] = DETOKENIZED
    without_effect: ClassVar[frozenset[str]] = frozenset(
        (OF_ANSWERS | TOKENIZED_PROMPT.keys()) - {"tokens", *DETOKENIZED}
    )

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
    request.check_prompt(body)
    return request


def parse_decode(body: Mapping[str, Any]) -> Decode:
    """The typed body. Raises ``InvalidRequest``."""
    return structure(body, Decode)
