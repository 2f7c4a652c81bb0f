"""What the three generation endpoints share: model, sampling, stop conditions, identity."""

from __future__ import annotations

import math
from typing import Annotated, Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.constraints import Between, Length, Only
from antiphon.requests.faults import quoted
from antiphon.requests.stream_options import ChunkOptions, StreamOptions
from antiphon.requests.structured import (
    Constraint,
    ResponseFormat,
    Source,
    StructuredOutputs,
    of_format,
    of_outputs,
    of_text,
    the_one,
)
from antiphon.requests.token_ids import TokenIds

INT32 = Between(-(2**31), 2**31 - 1)
INT64 = Between(-(2**63), 2**63 - 1)
PENALTY = Between(-2, 2)
ABOVE_0 = Between(math.ulp(0.0), 2)
"""The least float above 0 is its minimum."""

StopString = Annotated[str, Length(1)]


@attrs.define(kw_only=True)
class GenerationRequest(Body):
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
    repetition_penalty: Annotated[float, ABOVE_0] = 1.0
    min_tokens: Annotated[int, Between(0, 2**31 - 1)] = 0
    ignore_eos: bool = False
    stop_token_ids: Annotated[list[Any], Length(0, 64), TokenIds()] = attrs.field(factory=list)
    allowed_token_ids: Annotated[list[Any], Length(1), TokenIds()] | None = None
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: Annotated[bool, Only(True)] = True
    return_tokens_as_token_ids: bool = False
    return_hidden_states: Annotated[bool, Only(False)] = False
    include_reasoning: bool = True
    separate_reasoning: bool = True
    thinking_token_budget: Annotated[int, Between(0, 2**31 - 1)] | None = None
    stream_reasoning: Annotated[bool, Only(True)] = True
    priority: Annotated[int, INT32] = 0
    """Lower is admitted first."""
    cache_salt: Annotated[str, Length(1, 256)] | None = None
    structured_outputs: StructuredOutputs | None = None
    regex: Source | None = None
    json_schema: Source | None = None
    ebnf: Source | None = None
    request_id: str | None = None
    rid: str | None = None

    constraint: Constraint | None = attrs.field(default=None, init=False, eq=False)
    """What the text of the answer must match, whichever parameter said so."""

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The stop strings, none to four."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @property
    def wants_obfuscation(self) -> bool:
        """Whether deltas of the stream are padded to hide the length of their text."""
        return self.stream_options is not None and self.stream_options.include_obfuscation

    def formats(self) -> list[Constraint]:
        """The constraint of the endpoint's own format parameter, if it has one."""
        return []

    def check(self, token_limit: int | None, limit_param: str) -> None:
        """What no single field can tell, and ``constraint``. Raises ``InvalidRequest``."""
        if self.stream_options is not None and not self.stream:
            raise InvalidRequest(
                "`stream_options` is only allowed when `stream` is true.",
                code="invalid_value",
                param="stream_options",
            )
        for name in self.logit_bias:
            if not (name.isascii() and name.isdigit() and len(name) <= 10):
                raise InvalidRequest(
                    f"Invalid `logit_bias`: {quoted(name)} is not a token id.",
                    code="invalid_value",
                    param=f"logit_bias.{name}",
                )
        if token_limit is not None and self.min_tokens > token_limit:
            raise InvalidRequest(
                f"`min_tokens` is above `{limit_param}`, which is {token_limit}.",
                code="integer_above_max_value",
                param="min_tokens",
            )
        found = self.formats()
        found += of_outputs(self.structured_outputs)
        if self.regex is not None:
            found.append(Constraint(kind="regex", text=self.regex, param="regex"))
        if self.json_schema is not None:
            found.append(of_text(self.json_schema, "json_schema"))
        if self.ebnf is not None:
            found.append(Constraint(kind="gbnf", text=self.ebnf, param="ebnf"))
        self.constraint = the_one(found)


@attrs.define(kw_only=True)
class ChunkedRequest(GenerationRequest):
    """What chat and completions have beyond the rest: streams of chunks."""

    stream_options: ChunkOptions | None = None
    response_format: ResponseFormat | None = None
    return_token_ids: bool = False

    @property
    def wants_usage(self) -> bool:
        """Whether the stream ends with a chunk of usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def wants_running_usage(self) -> bool:
        """Whether every chunk of the stream carries the usage so far."""
        return self.stream_options is not None and self.stream_options.continuous_usage_stats

    def formats(self) -> list[Constraint]:
        return of_format(self.response_format, "response_format")
