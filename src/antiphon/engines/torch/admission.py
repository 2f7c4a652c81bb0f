"""What the engine refuses before it queues a request (pure)."""

from __future__ import annotations

from antiphon.engines.port import Capability, EngineError, EngineInfo, EngineRequest

MAX_TOP_LOGPROBS = 20

CAPABILITIES = frozenset(
    {
        Capability.SEED,
        Capability.LOGPROBS,
        Capability.LOGIT_BIAS,
        Capability.MIN_TOKENS,
        Capability.MIN_P,
        Capability.PENALTIES,
        Capability.ALLOWED_IDS,
    }
)


def refusal(request: EngineRequest, info: EngineInfo) -> EngineError | None:
    """Why the request cannot run here; None if it can."""
    if len(request.prompt) + 1 > info.context_length:
        return EngineError(
            code="context_length_exceeded",
            message=f"the prompt has {len(request.prompt)} tokens and leaves no room for an "
            f"answer: the context is {info.context_length} tokens",
        )
    message = _unsupported(request, info.vocab_size)
    return None if message is None else EngineError(code="unsupported", message=message)


def _unsupported(request: EngineRequest, vocab_size: int) -> str | None:
    if not request.prompt:
        return "the prompt has no tokens"
    if request.prompt_logprobs is not None:
        return "prompt_logprobs are not supported"
    if request.priority:
        return "priorities are not supported: requests run in order of arrival"
    if request.logprobs is not None and not 0 <= request.logprobs <= MAX_TOP_LOGPROBS:
        return f"logprobs is {request.logprobs}; it must be from 0 to {MAX_TOP_LOGPROBS}"
    if request.repetition <= 0:
        return f"repetition is {request.repetition}; it must be above 0"
    allowed = request.allowed_ids
    named = {
        "prompt": max(request.prompt),
        "stop_ids": max(request.stop_ids, default=0),
        "logit_bias": max(request.logit_bias, default=0),
        "allowed_ids": max(allowed or (), default=0),
    }
    for field, largest in named.items():
        if largest >= vocab_size:
            return f"{field} holds the id {largest}; the vocabulary has {vocab_size} tokens"
    if allowed is not None and not allowed:
        return "allowed_ids is empty: no token can be drawn"
    return None
