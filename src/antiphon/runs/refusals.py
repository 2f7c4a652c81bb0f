"""Engine errors as what a client may be told.

``unsupported`` and ``grammar_invalid`` are about the request, so their words are for the client;
the words of every other error are the engine's own and go to our log.
"""

from __future__ import annotations

from antiphon.engines.port import EngineError
from antiphon.errors import AntiphonError, EngineFailed, InvalidRequest, Overloaded, Unavailable


def refusal(
    error: EngineError, prompt_param: str, grammar_param: str | None = None
) -> AntiphonError:
    """The HTTP error for a request that the engine refused before its first token.

    The params are the fields that brought the prompt and the form its answer is held to.
    """
    match error.code:
        case "context_length_exceeded":
            return InvalidRequest(
                "The prompt is longer than the model's context length.",
                code="context_length_exceeded",
                param=prompt_param,
            )
        case "grammar_invalid":
            return InvalidRequest(error.message, code="invalid_schema", param=grammar_param)
        case "unsupported":
            return InvalidRequest(error.message, code="unsupported_parameter")
        case "engine_overloaded":
            return Overloaded()
        case _:
            return EngineFailed(began=False)


def engine_unavailable() -> AntiphonError:
    """The engine has died, or cannot be reached: another server may do."""
    return Unavailable("The engine is not running.", code="engine_unavailable")
