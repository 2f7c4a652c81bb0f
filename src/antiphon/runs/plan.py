"""What a run is to do, settled before the engine hears of it: pure values.

An endpoint turns its request into one ``RunPlan``; ``siblings`` turns the plan into the engine
requests of its choices.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from antiphon.engines.port import Capability
from antiphon.errors import InvalidRequest
from antiphon.requests.structured import Constraint
from antiphon.runs.answers import Answer
from antiphon.runs.catalogue import ServedModel
from responsory.segments import PLAIN, Spec, Tool, Tools
from responsory.segments.tools import NO_TOOLS


@attrs.define(kw_only=True)
class Sampling:
    """How tokens are drawn; neutral values are the defaults."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int
    """u64; choice i draws with seed + i."""
    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    logit_bias: Mapping[int, float] = attrs.field(factory=dict)
    allowed_ids: tuple[int, ...] | None = None
    logprobs: int | None = None
    logprobs_param: str = "logprobs"
    """The parameter that asked for them."""
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_ids: tuple[int, ...] = ()
    constraint: Constraint | None = None
    """What the answer must match."""
    forced_calls: str | None = None
    """The parameter that forces a call or limits which can be made; None: the model is free."""
    prompt_logprobs: int | None = None
    """Alternatives per token of an echoed prompt."""
    priority: int = 0
    cache_salt: str = ""

    def required(self) -> Iterator[tuple[str, str]]:
        """(capability, request parameter) of every option that is not neutral."""
        if self.presence:
            yield Capability.PENALTIES, "presence_penalty"
        if self.frequency:
            yield Capability.PENALTIES, "frequency_penalty"
        if self.repetition != 1:
            yield Capability.PENALTIES, "repetition_penalty"
        if self.logit_bias:
            yield Capability.LOGIT_BIAS, "logit_bias"
        if self.allowed_ids is not None:
            yield Capability.ALLOWED_IDS, "allowed_token_ids"
        if self.logprobs is not None:
            yield Capability.LOGPROBS, self.logprobs_param
        if self.min_p:
            yield Capability.MIN_P, "min_p"
        if self.min_tokens:
            yield Capability.MIN_TOKENS, "min_tokens"
        if self.prompt_logprobs is not None:
            yield Capability.PROMPT_LOGPROBS, "logprobs"
        if self.priority:
            yield Capability.PRIORITY, "priority"

    def held(self) -> Iterator[tuple[str, str]]:
        """The same for what holds an answer to a form while it is drawn."""
        if self.constraint is not None:
            yield Capability.GRAMMAR, self.constraint.param
        if self.forced_calls is not None:
            yield Capability.FORCED_CALLS, self.forced_calls

    def grammar_param(self) -> str | None:
        """The parameter that the constraint came from."""
        return None if self.constraint is None else self.constraint.param


@attrs.define(kw_only=True)
class TokenLimit:
    """The client's limit on output tokens."""

    tokens: int | None
    param: str
    cut_to_fit: bool
    """A limit beyond the context is cut (Responses) or refused (chat, completions)."""

    def resolve(self, prompt_tokens: int, context_length: int, prompt_param: str) -> int:
        """The limit for a prompt. Raises ``InvalidRequest`` (``context_length_exceeded``)."""
        room = context_length - prompt_tokens
        if room < (0 if self.tokens == 0 else 1):
            raise InvalidRequest(
                f"This prompt has {prompt_tokens} tokens and is longer than the model's context "
                f"length of {context_length} tokens allows.",
                code="context_length_exceeded",
                param=prompt_param,
            )
        if self.tokens is None:
            return room
        if self.tokens > room and not self.cut_to_fit:
            raise InvalidRequest(
                f"{self.param} is too large: {self.tokens}. The model's context length is "
                f"{context_length} tokens and the prompt has {prompt_tokens}.",
                code="context_length_exceeded",
                param=self.param,
            )
        return min(self.tokens, room)


@attrs.frozen(kw_only=True)
class EchoedPrompt:
    """A prompt that the answer begins with."""

    text: str
    unseen: int = 0
    """Ids at the start of the prompt that the text does not show: what models want before it."""


@attrs.define(kw_only=True)
class RunPlan:
    """One client request: P prompts of n choices each, numbered prompt-major."""

    tail: str
    """T: the tail of every public id of this request."""
    model: ServedModel
    prompts: Sequence[array[int]]
    prompt_param: str
    n: int = 1
    limit: TokenLimit
    sampling: Sampling
    stop: tuple[str, ...] = ()
    include_stop: bool = False
    format: Spec = PLAIN
    """How the raw text is read: as the model marks it, or as it stands."""
    thinks: Spec = PLAIN
    """How the model marks its reasoning, which is held to no form, be it told apart or not; as
    plain text if none is to be expected."""
    include_reasoning: bool = True
    shows_thought: bool = False
    """Reasoning is text of the answer, and so are its markers, be they control tokens or not."""
    calls: bool = False
    """Whether calls are looked for in the raw text; else their markers are text like any other."""
    parallel_calls: bool = True
    """False: the answer ends with its first call."""
    tools: Tools = NO_TOOLS
    """What the reader of calls is told."""
    callable: tuple[Tool, ...] = ()
    """The tools that may be called, in order."""
    calls_least: int = 0
    """So many calls must come."""
    calls_form: str | None = None
    """The form of an answer with calls (``forms.calls_form``), once it was made: of hundreds of
    tools it takes a while, and the choices of a run have the same one."""
    thought_budget: int | None = None
    """Tokens of reasoning after which its end is forced."""
    within: bool = False
    """The prompt ends in a text of the client's and not in a turn that the chat template opened:
    no reasoning has begun before the answer, unless the text ends in its opener."""
    skip_special: bool = True
    """Control tokens of the output are not shown."""
    tell_tokens: bool = False
    """Deltas tell the ids of their tokens and the count so far."""
    tokens_as_ids: bool = False
    """Logprobs show tokens by their ids."""
    prompt_ids: bool = False
    """The log's first event tells the prompt's ids."""
    echoed: Sequence[EchoedPrompt] = ()
    """One for each prompt, or none at all."""
    echo: Mapping[str, Any]
    """What the log's first event says of the request; holds at least ``model``."""
    answer: Answer

    def echo_of(self, choice: int) -> Mapping[str, Any]:
        """What the first event of this choice's log says of the request."""
        if not self.prompt_ids:
            return self.echo
        return {**self.echo, "prompt_token_ids": self.prompts[choice // self.n].tolist()}

    def check_capabilities(self) -> None:
        """Raises ``InvalidRequest`` for the first option the model's engine does not have."""
        capabilities = self.model.info.capabilities
        for capability, param in self.sampling.required():
            if capability not in capabilities:
                raise InvalidRequest(
                    f"`{param}` is not supported by the model `{self.model.id}`.",
                    code="unsupported_parameter",
                    param=param,
                )
        for capability, param in self.sampling.held():
            if capability not in capabilities:
                raise InvalidRequest(
                    f"`{param}`: the model `{self.model.id}` cannot be held to a form on this "
                    "server.",
                    code="unsupported_value",
                    param=param,
                )
