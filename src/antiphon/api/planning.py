"""From a typed request to the plan of its run: what the three endpoints do alike."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio import to_thread
from quart import g

from antiphon.api.admission import asks_to_generate
from antiphon.api.identity import unique
from antiphon.api.service import Service
from antiphon.errors import InvalidRequest, Overloaded
from antiphon.requests.generation import GenerationRequest
from antiphon.requests.responses import ResponseRequest
from antiphon.runs.asked import forced_calls
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.plan import Sampling

log = logging.getLogger(__name__)

T = TypeVar("T")


def id_tail(service: Service, request: GenerationRequest) -> str:
    """T of this request, as it is named by now; a live T is not used twice."""
    if request.user is not None:
        log.debug("%s is for the user %r", g.tail, request.user)
    return unique(g.tail, service.fanout.has_tail, lambda: secrets.token_hex(4))


def sampling(
    service: Service,
    request: GenerationRequest,
    model: ServedModel,
    logprobs: int | None,
    *,
    echo: bool = False,
) -> Sampling:
    """The sampling options; ``echo``: the prompt is shown too, and its logprobs if any are.

    Raises ``InvalidRequest`` for ids outside the vocabulary, and where no id is left to draw.
    """
    bias = {int(name): value for name, value in request.logit_bias.items()}
    for param, ids in (
        ("logit_bias", bias),
        ("stop_token_ids", request.stop_token_ids),
        ("allowed_token_ids", request.allowed_token_ids or ()),
    ):
        if (largest := max(ids, default=0)) >= model.info.vocab_size:
            raise InvalidRequest(
                f"Invalid `{param}`: {largest} is outside the vocabulary of "
                f"{model.info.vocab_size} tokens.",
                code="invalid_value",
                param=param,
            )
    _check_left(request, model)
    return Sampling(
        # top_p 0 means the most likely token alone, which is greedy decoding.
        temperature=request.temperature if request.top_p > 0 else 0.0,
        top_p=request.top_p or 1.0,
        top_k=max(request.top_k, 0),
        min_p=request.min_p,
        seed=(service.draw_seed() if request.seed is None else request.seed) % 2**64,
        presence=request.presence_penalty,
        frequency=request.frequency_penalty,
        repetition=request.repetition_penalty,
        logit_bias=bias,
        allowed_ids=None if request.allowed_token_ids is None else tuple(request.allowed_token_ids),
        logprobs=logprobs,
        logprobs_param=_asked_for_logprobs(request),
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stop_ids=tuple(request.stop_token_ids),
        constraint=request.constraint,
        forced_calls=forced_calls(request),
        prompt_logprobs=logprobs if echo else None,
        priority=request.priority,
        cache_salt=_salt(request.cache_salt or ""),
    )


def _check_left(request: GenerationRequest, model: ServedModel) -> None:
    """Raises ``InvalidRequest`` where ``min_tokens`` leaves none of the allowed ids."""
    if request.allowed_token_ids is None or not request.min_tokens:
        return
    ending = frozenset(() if request.ignore_eos else model.info.eos_ids)
    if ending.union(request.stop_token_ids).issuperset(request.allowed_token_ids):
        raise InvalidRequest(
            "All of `allowed_token_ids` end the answer, which `min_tokens` does not allow yet.",
            code="conflicting_parameters",
            param="allowed_token_ids",
        )


def _salt(asked: str) -> str:
    """Callers with different keys share no pages, so none can time another's prompts."""
    key = g.get("key")
    return asked if key is None else f"{key}:{asked}"


def _asked_for_logprobs(request: GenerationRequest) -> str:
    """The parameter that turns logprobs on."""
    if not isinstance(request, ResponseRequest):
        return "logprobs"
    return "top_logprobs" if request.top_logprobs else "include"


async def in_thread(service: Service, work: Callable[[], T], param: str) -> T:
    """Template and tokenizer off the event loop, within the time limit.

    Raises ``InvalidRequest`` naming ``param`` when the time is over, and ``Overloaded`` when it
    was spent waiting for a thread. A thread that is too slow is left to end by itself. What makes
    the engine work keeps a place there meanwhile, or is refused before anything is done for it.
    """
    if not asks_to_generate():
        return await _in_time(service, work, param)
    service.fanout.check_room()
    with service.fanout.admission.coming():
        return await _in_time(service, work, param)


async def _in_time(service: Service, work: Callable[[], T], param: str) -> T:
    began = False

    def begin() -> T:
        nonlocal began
        began = True
        return work()

    try:
        with anyio.fail_after(service.prompt_timeout_s):
            return await to_thread.run_sync(begin, abandon_on_cancel=True)
    except TimeoutError:
        if not began:
            raise Overloaded("The server is busy. Try again later.") from None
        raise InvalidRequest(
            "The prompt took too long to render.", code="invalid_value", param=param
        ) from None
