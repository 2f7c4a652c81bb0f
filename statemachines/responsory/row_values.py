"""The values in a row: what each field of an event may hold, and its JSON form.

Reading and writing refuse the same values, so a log that could not be read is not written. A
logprob is ``[token, logprob, bytes, top]`` and an alternative ``[token, logprob, bytes]``, each
with the token's id after these where it is told, null for bytes that are the token's own UTF-8, and
null for a logprob that is minus infinity or no number: JSON has neither, and every projection shows
both as the same floor. A token that nothing stands before has false for its logprob. What a delta
tells of its tokens is ``[ids, output]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from responsory.checks import count, counts, finite, text, unlike
from responsory.cuts import Cuts
from responsory.values import JSON, Logprob, Tokens, TopLogprob, Usage


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


def _write_logprob(value: float | None) -> JSON:
    if value is None:
        return False
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


def _write_id(entry: Logprob | TopLogprob) -> list[JSON]:
    return [] if entry.id is None else [count(entry.id)]


def _read_token(token: Any, logprob: Any, data: Any) -> tuple[str, float, bytes]:
    own = text(token).encode()
    if data is not None:
        if any(type(byte) is not int for byte in entries(data)):
            raise unlike(data)
        own = bytes(data)
    return token, _read_logprob(logprob), own


def _write_top(top: TopLogprob) -> JSON:
    return [*_write_token(top), *_write_id(top)]


def _write_logprobs(logprobs: tuple[Logprob, ...]) -> JSON:
    return [
        [*_write_token(entry), [*map(_write_top, entry.top)], *_write_id(entry)]
        for entry in logprobs
    ]


def _read_id(rest: list[Any]) -> int | None:
    """Of what follows the values that every entry has: nothing, or the id."""
    if not rest:
        return None
    (value,) = entries(rest, 1)
    return count(value)  # type: ignore[no-any-return]  # a count is an int


def _read_top(value: Any) -> TopLogprob:
    token, logprob, data, *rest = _of(value, 3)
    read = _read_token(token, logprob, data)
    return TopLogprob(*read, _read_id(rest))


def _read_entry(value: Any) -> Logprob:
    token, logprob, data, top, *rest = _of(value, 4)
    alternatives = tuple(map(_read_top, entries(top)))
    number, identity = logprob, _read_id(rest)
    if number is False:
        own, _, spelled = _read_token(token, None, data)
        return Logprob(own, None, spelled, alternatives, identity)
    return Logprob(*_read_token(token, number, data), alternatives, identity)


def _of(value: Any, least: int) -> list[Any] | tuple[Any, ...]:
    """A JSON array that has ``least`` values, or more."""
    if isinstance(value, list | tuple) and len(value) >= least:
        return value
    raise unlike(value)


def _read_logprobs(value: Any) -> tuple[Logprob, ...]:
    return tuple(map(_read_entry, entries(value)))


def _write_ids(value: Any) -> JSON:
    return list(counts(value))


def _read_ids(value: Any) -> tuple[int, ...]:
    return counts(tuple(entries(value)))  # type: ignore[no-any-return]  # counts are ints


def _write_tokens(tokens: Any) -> JSON:
    # None is the default of a row's last value, and left out.
    if not isinstance(tokens, Tokens):
        raise unlike(tokens)
    return [_write_ids(tokens.ids), count(tokens.output)]


def _read_tokens(value: Any) -> Tokens:
    ids, output = entries(value, 2)
    return Tokens(_read_ids(ids), count(output))


def _write_cuts(value: Any) -> JSON:
    return [list(_pair(cut)) for cut in _tuple(value)]


def _read_cuts(value: Any) -> Cuts:
    return tuple(map(_pair, entries(value)))


def _tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, tuple):
        return value
    raise unlike(value)


def _pair(value: Any) -> tuple[int, int]:
    length, number = entries(value, 2)
    return count(length), count(number)


USAGE = Field(_write_usage, _read_usage)
LOGPROBS = Field(_write_logprobs, _read_logprobs)
TOKENS = Field(_write_tokens, _read_tokens)
IDS = Field(_write_ids, _read_ids)
CUTS = Field(_write_cuts, _read_cuts)
