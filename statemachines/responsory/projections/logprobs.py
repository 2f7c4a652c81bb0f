"""Log probabilities in the shapes of the public APIs."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.values import Logprob, TopLogprob

FLOOR = -9999.0
"""Stands for minus infinity (a masked token), which JSON cannot say; the OpenAI API's own value."""


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


def _finite(logprob: float) -> float:
    return max(logprob, FLOOR)


class Offsets:
    """Where each token of a completion begins, in characters.

    A token inside a character has the offset of that character. The offset depends on the tokens
    before it alone, not on how they were cut into deltas.
    """

    __slots__ = ("_at", "_decoder")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at = 0

    def next(self, data: bytes) -> int:
        """The offset of the token with these bytes; the next one begins after it."""
        at = self._at
        self._at += len(self._decoder.decode(data))
        return at


def completion_logprobs(logprobs: Iterable[Logprob], offsets: Offsets) -> dict[str, Any]:
    """The four parallel arrays of a completion choice; the drawn token is in ``top_logprobs``."""
    shape: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for logprob in logprobs:
        best: dict[str, float] = {}
        for top in logprob.top:
            best.setdefault(top.token, _finite(top.logprob))
        best.setdefault(logprob.token, _finite(logprob.logprob))
        shape["tokens"].append(logprob.token)
        shape["token_logprobs"].append(_finite(logprob.logprob))
        shape["top_logprobs"].append(best)
        shape["text_offset"].append(offsets.next(logprob.data))
    return shape
