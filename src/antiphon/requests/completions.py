"""``POST /v1/completions``: a raw prompt is continued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between, Only
from antiphon.requests.converter import structure
from antiphon.requests.generation import (
    GenerationRequest,
    ResponseFormat,
    check_response_format,
)
from antiphon.requests.refusals import COMPLETIONS, refuse_unsupported

MAX_SEQUENCES = 4096
DEFAULT_MAX_TOKENS = 16


@attrs.define(kw_only=True)
class CompletionRequest(GenerationRequest):
    """The body of a completions call; ``prompts`` is its prompt in one form."""

    prompt: str | list[Any]
    max_tokens: Annotated[int, Between(1)] = DEFAULT_MAX_TOKENS
    n: Annotated[int, Between(1, 128)] = 1
    best_of: Annotated[int, Between(1, 20)] | None = None
    echo: Annotated[bool, Only(False)] = False
    response_format: ResponseFormat | None = None
    logprobs: Annotated[int, Between(0, 20)] | None = None
    add_special_tokens: bool = True
    include_reasoning: Annotated[bool, Only(True)] = True
    """A completion is the raw text: reasoning cannot be told from it."""

    @property
    def prompts(self) -> list[str | list[int]]:
        """Each prompt as text or as token ids."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        return [self.prompt] if isinstance(self.prompt[0], int) else self.prompt


def parse_completion(body: Mapping[str, Any]) -> CompletionRequest:
    """The typed request. Raises ``InvalidRequest``."""
    refuse_unsupported(body, COMPLETIONS)
    request = structure(body, CompletionRequest)
    request.check()
    check_response_format(request.response_format)
    _check_prompt(request.prompt)
    if len(request.prompts) * request.n > MAX_SEQUENCES:
        raise InvalidRequest(
            f"Prompts times `n` may not exceed {MAX_SEQUENCES}.",
            code="integer_above_max_value",
            param="n",
        )
    if request.best_of is not None and request.best_of != request.n:
        raise InvalidRequest(
            "`best_of` is only supported when it equals `n`.",
            code="unsupported_value",
            param="best_of",
        )
    return request


def _check_prompt(prompt: str | list[Any]) -> None:
    if isinstance(prompt, str):
        return
    if not prompt:
        raise InvalidRequest("Invalid `prompt`: it is empty.", code="empty_array", param="prompt")
    if type(prompt[0]) is not int and len(prompt) > MAX_SEQUENCES:
        raise InvalidRequest(
            f"Invalid `prompt`: more than {MAX_SEQUENCES} prompts.",
            code="array_above_max_length",
            param="prompt",
        )
    if all(type(item) is int for item in prompt):
        _check_ids(prompt, "prompt")
    elif all(type(item) is list for item in prompt):
        for index, ids in enumerate(prompt):
            if not ids:
                raise InvalidRequest(
                    "Invalid `prompt`: it holds an empty list.",
                    code="empty_array",
                    param=f"prompt[{index}]",
                )
            _check_ids(ids, f"prompt[{index}]")
    elif not all(type(item) is str for item in prompt):
        raise InvalidRequest(
            "Invalid `prompt`: expected a string, strings, token ids or lists of token ids.",
            code="invalid_type",
            param="prompt",
        )


def _check_ids(ids: list[Any], param: str) -> None:
    for index, token in enumerate(ids):
        if type(token) is not int or not 0 <= token < 2**32:
            raise InvalidRequest(
                f"Invalid `{param}`: not a token id.",
                code="invalid_type" if type(token) is not int else "invalid_value",
                param=f"{param}[{index}]",
            )
