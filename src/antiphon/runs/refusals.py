"""Engine errors as what a client may be told.

``unsupported`` and ``grammar_invalid`` are about the request, so their words are for the client;
the words of every other error are the engine's own and go to our log.
"""

from __future__ import annotations

import logging
import re

from antiphon.engines.port import EngineError, EngineInfo
from antiphon.errors import AntiphonError, EngineFailed, InvalidRequest, Overloaded, Unavailable
from antiphon.runs.plan import RunPlan
from antiphon.runs.run import Run

log = logging.getLogger(__name__)

OPTIONS = {
    "allowed": "allowed_token_ids",
    "allowed_ids": "allowed_token_ids",
    "min_tokens": "min_tokens",
    "stop_ids": "stop_token_ids",
    "logit_bias": "logit_bias",
    "repetition": "repetition_penalty",
}
"""What an engine calls the options of a request, and the parameters that set them."""


def failed(error: EngineError, run: Run) -> AntiphonError:
    """What the client of a run is told of which a row ended so; logged at the level of that.

    As it is while nothing of the answer has left, be the run accepted or not. In a stream that has
    begun it is the server's error, in the same words.
    """
    told = _refusal(error, run.plan)
    if isinstance(told, EngineFailed):
        told = EngineFailed(began=run.accepted)
    elif run.begun:
        told = EngineFailed(told.message)
    level = logging.ERROR if told.status == 500 else logging.INFO
    log.log(level, "engine on %s: %s: %s", run.plan.tail, error.code, error.message)
    return told


def _refusal(error: EngineError, plan: RunPlan) -> AntiphonError:
    match error.code:
        case "context_length_exceeded":
            return InvalidRequest(
                "The prompt is longer than the model's context length.",
                code="context_length_exceeded",
                param=plan.prompt_param,
            )
        case "grammar_invalid":
            param, message = _placed(error.message, plan)
            return InvalidRequest(message, code="invalid_schema", param=param)
        case "unsupported":
            named = (OPTIONS.get(word) for word in re.findall(r"\w+", error.message))
            param = next((param for param in named if param is not None), None)
            return InvalidRequest(error.message, code="unsupported_parameter", param=param)
        case "engine_overloaded":
            return Overloaded()
        case _:
            return EngineFailed()


def _placed(message: str, plan: RunPlan) -> tuple[str | None, str]:
    """The parameter that a form came from, and what is wrong with it. Of several that make one
    form, the engine says first whose it is."""
    place, _, words = message.partition(": ")
    constraint = plan.sampling.grammar_param()
    if words and place in (constraint, *(tool.place for tool in plan.callable)):
        return place, words
    return constraint or plan.sampling.forced_calls, message


def engine_unavailable(info: EngineInfo | None = None, now_ns: int = 0) -> AntiphonError:
    """The engine has died, or cannot be reached: another server may do.

    ``info`` may tell when it is back, ``now_ns`` is the monotonic clock.
    """
    if info is None or info.back_ns is None:
        return Unavailable("The engine is not running.", code="engine_unavailable")
    error = Unavailable("The engine is being started again.", code="engine_unavailable")
    error.wait_s = max(info.back_ns - now_ns, 10**9) / 1e9
    return error
