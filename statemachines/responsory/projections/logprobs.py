"""Log probabilities in the shapes of the public APIs.

``as_ids``: whether the request asked for tokens as ``token_id:N``, vLLM's spelling of a token that
no other token shares. An entry whose id nobody told keeps its text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.values import Logprob, TopLogprob

FLOOR = -9999.0
"""Stands for minus infinity (a masked token) and for what is no number, neither of which JSON can
say; the OpenAI API's own value."""


def entry(logprob: Logprob, *, as_ids: bool = False) -> dict[str, Any]:
    """``{token, logprob, bytes, top_logprobs}``: the entry of Responses and chat."""
    tops = [_token(top, as_ids=as_ids) for top in logprob.top]
    return {**_token(logprob, as_ids=as_ids), "top_logprobs": tops}


def entries(logprobs: Iterable[Logprob], *, as_ids: bool = False) -> list[dict[str, Any]]:
    return [entry(logprob, as_ids=as_ids) for logprob in logprobs]


def chat_logprobs(logprobs: Iterable[Logprob], *, as_ids: bool = False) -> dict[str, Any]:
    """The ``logprobs`` object of a chat choice."""
    return {"content": entries(logprobs, as_ids=as_ids), "refusal": None}


def _token(value: Logprob | TopLogprob, *, as_ids: bool) -> dict[str, Any]:
    return {
        "token": _spelled(value, as_ids=as_ids),
        "logprob": _finite(value.logprob),
        "bytes": list(value.data),
    }


def _spelled(value: Logprob | TopLogprob, *, as_ids: bool) -> str:
    return f"token_id:{value.id}" if as_ids and value.id is not None else value.token


def _finite(logprob: float | None) -> float | None:
    """As JSON has it; None is for the first token of an echoed prompt."""
    if logprob is None:
        return None
    return logprob if FLOOR < logprob < math.inf else FLOOR


def completion_logprobs(
    logprobs: Iterable[Logprob], offsets: list[int], *, as_ids: bool = False
) -> dict[str, Any]:
    """The four parallel arrays of a completion choice; the drawn token is in ``top_logprobs``.
    ``offsets``: where each token begins in the visible text."""
    shape: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": offsets,
    }
    for logprob in logprobs:
        token, own = _spelled(logprob, as_ids=as_ids), _finite(logprob.logprob)
        best: dict[str, float | None] = {}
        for top in logprob.top:
            best.setdefault(_spelled(top, as_ids=as_ids), _finite(top.logprob))
        best.setdefault(token, own)
        shape["tokens"].append(token)
        shape["token_logprobs"].append(own)
        shape["top_logprobs"].append(None if own is None else best)
    return shape
