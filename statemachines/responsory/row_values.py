"""The values in a row: what each field of an event may hold, and its JSON form.

Reading and writing refuse the same values, so a log that could not be read is not written. A
logprob is ``[token, logprob, bytes, top]`` and an alternative ``[token, logprob, bytes]``, with
null for bytes that are the token's own UTF-8, and null for a logprob that is minus infinity or no
number: JSON has neither, and every projection shows both as the same floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from responsory.checks import count, finite, text, unlike
from responsory.values import JSON, Logprob, TopLogprob, Usage


class Field(NamedTuple):
    """How a field's value becomes JSON, and comes from it. Both raise ValueError."""

    write: Callable[[Any], JSON]
    read: Callable[[Any], Any]


def _write_usage(usage: Usage) -> JSON:
    return [
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cached_tokens),
        count(usage.reasoning_tokens),
        count(usage.cache_write_tokens),
    ]


def _read_usage(value: Any) -> Usage:
    return Usage(*map(count, entries(value, 5)))


def entries(value: Any, length: int | None = None) -> list[Any] | tuple[Any, ...]:
    """A JSON array, of a length if one is given."""
    if isinstance(value, list | tuple) and length in (None, len(value)):
        return value
    raise unlike(value)


def _write_logprob(value: float) -> JSON:
    return float(value) if finite(value) else None


def _read_logprob(value: Any) -> float:
    if value is None:
        return -math.inf
    if isinstance(value, bool) or not (isinstance(value, int | float) and finite(value)):
        raise unlike(value)
    return float(value)


def _write_token(entry: Logprob | TopLogprob) -> list[JSON]:
    own = text(entry.token).encode()
    data = None if entry.data == own else list(entry.data)
    return [entry.token, _write_logprob(entry.logprob), data]


def _read_token(token: Any, logprob: Any, data: Any) -> tuple[str, float, bytes]:
    own = text(token).encode()
    if data is not None:
        if any(type(byte) is not int for byte in entries(data)):
            raise unlike(data)
        own = bytes(data)
    return token, _read_logprob(logprob), own


def _write_logprobs(logprobs: tuple[Logprob, ...]) -> JSON:
    return [[*_write_token(entry), [*map(_write_token, entry.top)]] for entry in logprobs]


def _read_logprobs(value: Any) -> tuple[Logprob, ...]:
    return tuple(
        Logprob(
            *_read_token(*token),
            tuple(
                TopLogprob(*_read_token(*entries(alternative, 3))) for alternative in entries(top)
            ),
        )
        for *token, top in (entries(entry, 4) for entry in entries(value))
    )


USAGE = Field(_write_usage, _read_usage)
LOGPROBS = Field(_write_logprobs, _read_logprobs)
