"""``POST /v1/completions``: a raw prompt is continued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between
from antiphon.requests.converter import structure
from antiphon.requests.generation import ChunkedRequest
from antiphon.requests.refusals import COMPLETIONS
from antiphon.requests.token_ids import check_token_ids

MAX_SEQUENCES = 4096
DEFAULT_MAX_TOKENS = 16


@attrs.define(kw_only=True)
class CompletionRequest(ChunkedRequest):
    """The body of a completions call; ``prompts`` is its prompt in one form."""

    refused: ClassVar[Mapping[str, str]] = COMPLETIONS
    without_effect: ClassVar[frozenset[str]] = frozenset({
        "store", "metadata", "prediction", "moderation", "service_tier", "session_id",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier",
    })  # fmt: skip

    prompt: str | list[Any]
    max_tokens: Annotated[int, Between(0)] = DEFAULT_MAX_TOKENS
    """0 only with ``echo``: the prompt is scored and nothing is generated."""
    n: Annotated[int, Between(1, 128)] = 1
    best_of: Annotated[int, Between(1, 20)] | None = None
    echo: bool = False
    logprobs: Annotated[int, Between(0, 20)] | None = None
    add_special_tokens: bool = True

    @property
    def prompts(self) -> list[str | list[int]]:
        """Each prompt as text or as token ids."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        return [self.prompt] if isinstance(self.prompt[0], int) else self.prompt


def parse_completion(body: Mapping[str, Any]) -> CompletionRequest:
    """The typed request. Raises ``InvalidRequest``."""
    request = structure(body, CompletionRequest)
    request.check(request.max_tokens, "max_tokens")
    _check_prompt(request.prompt)
    if request.max_tokens == 0 and not request.echo:
        raise InvalidRequest(
            "`max_tokens` may be 0 only with `echo`.",
            code="integer_below_min_value",
            param="max_tokens",
        )
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
    batch: list[Any] = prompt
    if type(batch[0]) is int:
        check_token_ids(batch, "prompt")
        return
    if len(batch) > MAX_SEQUENCES:
        raise InvalidRequest(
            f"Invalid `prompt`: more than {MAX_SEQUENCES} prompts.",
            code="array_above_max_length",
            param="prompt",
        )
    kind = type(batch[0])
    if kind is not str and kind is not list:
        raise _not_a_prompt("prompt[0]")
    for index, item in enumerate(batch):
        if type(item) is not kind:
            raise _not_a_prompt(f"prompt[{index}]")
        if isinstance(item, str):
            continue
        if not item:
            raise InvalidRequest(
                "Invalid `prompt`: it holds an empty list.",
                code="empty_array",
                param=f"prompt[{index}]",
            )
        check_token_ids(item, f"prompt[{index}]")


def _not_a_prompt(param: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid `{param}`: `prompt` is a string, strings, token ids or lists of token ids.",
        code="invalid_type",
        param=param,
    )
