"""The values in a row: what each field of an event may hold, and its JSON form.

Reading and writing refuse the same values, so a log that could not be read is not written. A
logprob is ``[token, logprob, bytes, top]`` and an alternative ``[token, logprob, bytes]``, with
null for bytes that are the token's own UTF-8, and null for a logprob that is minus infinity or no
number: JSON has neither, and every projection shows both as the same floor.

Numbers are whole, and small enough to be exact in every JSON reader; text is what UTF-8 can say
(RFC 7493, sections 2.1 and 2.2).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from responsory.errors import shown
from responsory.values import JSON, Logprob, TopLogprob, Usage

Check: TypeAlias = Callable[[Any], Any]
"""Gives its argument back. Raises ValueError where no such field can hold it."""

LARGEST = 2**53 - 1
DEEPEST = 256
"""Levels of nesting in an echo."""


class Field(NamedTuple):
    """How a field's value becomes JSON, and comes from it. Both raise ValueError."""

    write: Callable[[Any], JSON]
    read: Callable[[Any], Any]


def unlike(value: object) -> ValueError:
    return ValueError(f"cannot be {shown(value)}")


def count(value: Any) -> Any:
    """A count, an index, a time in Unix seconds or a token id."""
    # bool is an int to isinstance, and no count is a bool.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return value
    raise unlike(value)


def text(value: Any) -> Any:
    if not isinstance(value, str):
        raise unlike(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"holds half a surrogate pair: {shown(value)}") from None
    return value


def flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise unlike(value)


def stop(value: Any) -> Any:
    """A stop string or a token id."""
    return text(value) if isinstance(value, str) else count(value)


def optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def one_of(*choices: str | None) -> Check:
    def check(value: Any) -> Any:
        if value not in choices:
            raise unlike(value)
        return value

    return check


def echo(value: Any) -> Any:
    """A JSON object, however its members look."""
    if not isinstance(value, dict):
        raise unlike(value)
    _check_json(value, 1)
    return value


def _check_json(value: Any, depth: int) -> None:
    if depth > DEEPEST and isinstance(value, dict | list | tuple):
        raise ValueError(f"is nested more than {DEEPEST} levels deep")
    if isinstance(value, dict):
        for key, member in value.items():
            text(key)
            _check_json(member, depth + 1)
    elif isinstance(value, list | tuple):
        for member in value:
            _check_json(member, depth + 1)
    elif isinstance(value, str):
        text(value)
    elif value is not None and not (isinstance(value, int | float) and _finite(value)):
        raise ValueError(f"holds {shown(value)}, which is not JSON")


def _finite(value: float) -> bool:
    """Whether it has a JSON form that every reader takes; NaN has none."""
    return abs(value) <= sys.float_info.max


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
    return float(value) if _finite(value) else None


def _read_logprob(value: Any) -> float:
    if value is None:
        return -math.inf
    if isinstance(value, bool) or not (isinstance(value, int | float) and _finite(value)):
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
