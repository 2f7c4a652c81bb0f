"""What the engine refuses before it queues a request (pure)."""

from __future__ import annotations

import math

from antiphon.engines.port import Capability, EngineError, EngineInfo, EngineRequest

MAX_TOP_LOGPROBS = 20
CAPABILITIES = frozenset(
    {
        Capability.SEED,
        Capability.LOGPROBS,
        Capability.PROMPT_LOGPROBS,
        Capability.LOGIT_BIAS,
        Capability.MIN_TOKENS,
        Capability.MIN_P,
        Capability.PENALTIES,
        Capability.ALLOWED_IDS,
        Capability.PRIORITY,
    }
)


def refusal(request: EngineRequest, info: EngineInfo) -> EngineError | None:
    """Why the request cannot run here; None if it can."""
    if len(request.prompt) + min(request.max_tokens, 1) > info.context_length:
        return EngineError(
            code="context_length_exceeded",
            message=f"the prompt has {len(request.prompt)} tokens and leaves no room for an "
            f"answer: the context is {info.context_length} tokens",
        )
    message = _unsupported(request, info.vocab_size, info.eos_ids)
    return None if message is None else EngineError(code="unsupported", message=message)


def _unsupported(request: EngineRequest, vocab_size: int, eos_ids: frozenset[int]) -> str | None:
    if not request.prompt:
        return "the prompt has no tokens"
    counts = {"logprobs": request.logprobs, "prompt_logprobs": request.prompt_logprobs}
    for option, count in counts.items():
        if count is not None and not 0 <= count <= MAX_TOP_LOGPROBS:
            return f"{option} is {count}; it must be from 0 to {MAX_TOP_LOGPROBS}"
    if not 0 < request.repetition < math.inf:
        return f"repetition is {request.repetition}; it must be above 0 and finite"
    return _ids_out_of_range(request, vocab_size) or _nothing_to_draw(request, eos_ids)


def _ids_out_of_range(request: EngineRequest, vocab_size: int) -> str | None:
    named = {
        "prompt": max(request.prompt),
        "stop_ids": max(request.stop_ids, default=0),
        "logit_bias": max(request.logit_bias, default=0),
        "allowed_ids": max(request.allowed_ids or (), default=0),
    }
    for field, largest in named.items():
        if largest >= vocab_size:
            return f"{field} holds the id {largest}; the vocabulary has {vocab_size} tokens"
    return None


def _nothing_to_draw(request: EngineRequest, eos_ids: frozenset[int]) -> str | None:
    """Complains if every allowed id would be masked until ``min_tokens`` are reached."""
    if request.allowed_ids is None:
        return None
    if not request.allowed_ids:
        return "allowed_ids is empty: no token can be drawn"
    stopping = frozenset(request.stop_ids) | (frozenset() if request.ignore_eos else eos_ids)
    if request.min_tokens > 0 and stopping.issuperset(request.allowed_ids):
        return "all allowed token ids are stop ids, which min_tokens keeps from being drawn"
    return None
