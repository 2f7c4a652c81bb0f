"""Log probabilities in the shapes of the public APIs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.values import Logprob, TopLogprob

FLOOR = -9999.0
"""Stands for minus infinity (a masked token) and for what is no number, neither of which JSON can
say; the OpenAI API's own value."""


def entry(logprob: Logprob) -> dict[str, Any]:
    """``{token, logprob, bytes, top_logprobs}``: the entry of Responses and chat."""
    return {**_token(logprob), "top_logprobs": [_token(top) for top in logprob.top]}


def entries(logprobs: Iterable[Logprob]) -> list[dict[str, Any]]:
    return [entry(logprob) for logprob in logprobs]


def chat_logprobs(logprobs: Iterable[Logprob]) -> dict[str, Any]:
    """The ``logprobs`` object of a chat choice."""
    return {"content": entries(logprobs), "refusal": None}


def _token(value: Logprob | TopLogprob) -> dict[str, Any]:
    return {"token": value.token, "logprob": _finite(value.logprob), "bytes": list(value.data)}


def _finite(logprob: float | None) -> float | None:
    """As JSON has it; None is for the first token of an echoed prompt."""
    if logprob is None:
        return None
    return logprob if FLOOR < logprob < math.inf else FLOOR


def completion_logprobs(logprobs: Iterable[Logprob], offsets: list[int]) -> dict[str, Any]:
    """The four parallel arrays of a completion choice; the drawn token is in ``top_logprobs``.
    ``offsets``: where each token begins in the visible text."""
    shape: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": offsets,
    }
    for logprob in logprobs:
        own, best = _finite(logprob.logprob), dict[str, float | None]()
        for top in logprob.top:
            best.setdefault(top.token, _finite(top.logprob))
        best.setdefault(logprob.token, own)
        shape["tokens"].append(logprob.token)
        shape["token_logprobs"].append(own)
        shape["top_logprobs"].append(None if own is None else best)
    return shape
