"""What the three generation endpoints share: model, sampling, stop conditions, identity."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Above, Between, Length, Only

INT64 = Between(-(2**63), 2**63 - 1)
PENALTY = Between(-2, 2)

Verbosity = Literal["low", "medium", "high"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
TokenId = Annotated[int, Between(0, 2**32 - 1)]
StopString = Annotated[str, Length(1)]


@attrs.define(kw_only=True)
class StreamOptions:
    """``stream_options``; ``include_usage`` has no meaning on Responses."""

    include_usage: bool = False
    continuous_usage_stats: Annotated[bool, Only(False)] = False
    include_obfuscation: Annotated[bool, Only(False)] = False


@attrs.define(kw_only=True)
class ResponseFormat:
    """``response_format`` of chat and completions: free text is the only one offered."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: dict[str, Any] | None = None


def check_response_format(response_format: ResponseFormat | None) -> None:
    """Raises ``InvalidRequest`` for anything but free text."""
    if response_format is not None and response_format.type != "text":
        raise InvalidRequest(
            "Only `response_format` of type 'text' is supported by this server.",
            code="unsupported_value",
            param="response_format.type",
        )


@attrs.define(kw_only=True)
class GenerationRequest:
    """Fields by their OpenAI names, then the extras by their vLLM names."""

    model: Annotated[str, Length(1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Between(0, 2)] = 1.0
    top_p: Annotated[float, Between(0, 1)] = 1.0
    presence_penalty: Annotated[float, PENALTY] = 0.0
    frequency_penalty: Annotated[float, PENALTY] = 0.0
    seed: Annotated[int, INT64] | None = None
    stop: StopString | Annotated[list[StopString], Length(1, 4)] | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Between(-100, 100)]], Length(0, 1024)] = (
        attrs.field(factory=dict)
    )
    user: Annotated[str, Length(0, 512)] | None = None

    top_k: Annotated[int, Between(-1, 2**31 - 1)] = 0
    min_p: Annotated[float, Between(0, 1)] = 0.0
    repetition_penalty: Annotated[float, Above(0), Between(None, 2)] = 1.0
    min_tokens: Annotated[int, Between(0, 2**31 - 1)] = 0
    ignore_eos: bool = False
    stop_token_ids: Annotated[list[TokenId], Length(0, 64)] = attrs.field(factory=list)
    allowed_token_ids: Annotated[list[Annotated[int, Between(0, 2**32 - 1)]], Length(1)] | None = (
        None
    )
    include_stop_str_in_output: bool = False
    skip_special_tokens: Annotated[bool, Only(True)] = True
    spaces_between_special_tokens: Annotated[bool, Only(True)] = True
    return_token_ids: Annotated[bool, Only(False)] = False
    return_tokens_as_token_ids: Annotated[bool, Only(False)] = False
    return_hidden_states: Annotated[bool, Only(False)] = False
    include_reasoning: bool = True
    separate_reasoning: Annotated[bool, Only(True)] = True
    stream_reasoning: Annotated[bool, Only(True)] = True
    request_id: str | None = None
    rid: str | None = None

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The stop strings, none to four."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @property
    def wants_usage(self) -> bool:
        """Whether the stream ends with a chunk of usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    def check(self) -> None:
        """What no single field can tell. Raises ``InvalidRequest``."""
        if self.stream_options is not None and not self.stream:
            raise InvalidRequest(
                "`stream_options` is only allowed when `stream` is true.",
                code="invalid_value",
                param="stream_options",
            )
        for name in self.logit_bias:
            if not (name.isascii() and name.isdigit() and len(name) <= 10):
                raise InvalidRequest(
                    f"Invalid `logit_bias`: '{name}' is not a token id.",
                    code="invalid_value",
                    param=f"logit_bias.{name}",
                )


RESERVED_TEMPLATE_NAMES = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
)


def check_template_kwargs(kwargs: dict[str, Any]) -> None:
    """Refuse the names that the server sets itself. Raises ``InvalidRequest``."""
    for name in sorted(RESERVED_TEMPLATE_NAMES & kwargs.keys()):
        raise InvalidRequest(
            f"`chat_template_kwargs` may not set '{name}'.",
            code="invalid_value",
            param=f"chat_template_kwargs.{name}",
        )


def template_variables(effort: Effort | None, verbosity: Verbosity | None) -> dict[str, Any]:
    """The names by which chat templates know these two; none for what was not asked."""
    variables: dict[str, Any] = {}
    if effort is not None:
        thinking = effort != "none"
        variables |= {"enable_thinking": thinking, "thinking": thinking, "reasoning_effort": effort}
    if verbosity is not None:
        variables["verbosity"] = verbosity
    return variables
