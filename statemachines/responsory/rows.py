"""Events as stored rows: ``[kind, seq, …]``, plain JSON values in the order of the event's fields.

Fields at the end that hold their default are left out. A logprob is ``[token, logprob, bytes,
top]`` and an alternative ``[token, logprob, bytes]``, with null for bytes that are the token's own
UTF-8. Rows come from disk, so reading checks them: an unknown kind, a missing field or a value of
the wrong type is a LogError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import attrs

from responsory.errors import LogError
from responsory.events import EVENTS, Event
from responsory.values import (
    JSON,
    ItemStatus,
    ItemType,
    Logprob,
    PartType,
    Phase,
    TopLogprob,
    Usage,
)

KINDS: dict[str, type[Event]] = {event.kind: event for event in EVENTS}

NONE = type(None)
SCALARS: dict[str, tuple[type, ...]] = {
    "seq": (int,),
    "id": (str,),
    "created_at": (int,),
    "background": (bool,),
    "item": (int,),
    "part": (int,),
    "name": (str, NONE),
    "call_id": (str, NONE),
    "text": (str,),
    "completed_at": (int, NONE),
    "stop": (str, int, NONE),
    "code": (str,),
    "message": (str,),
}
CHOICES: dict[str, tuple[str | None, ...]] = {
    "type": (*get_args(ItemType), *get_args(PartType)),
    "phase": (*get_args(Phase), None),
    "status": get_args(ItemStatus),
    "reason": ("max_output_tokens", "content_filter"),
}


def to_row(event: Event) -> list[JSON]:
    """``[kind, seq, …]``."""
    fields = FIELDS[type(event)]
    values = [getattr(event, field.name) for field in fields]
    while values and values[-1] == fields[len(values) - 1].default:
        values.pop()
    pairs = zip(fields, values, strict=False)
    return [event.kind, *(ENCODE.get(field.name, _same)(value) for field, value in pairs)]


def from_row(row: JSON) -> Event:
    """The event of a row. Raises LogError."""
    if not isinstance(row, Sequence) or isinstance(row, str) or not row:
        raise LogError(f"not a row: {row!r}")
    kind, values = row[0], row[1:]
    if not isinstance(kind, str) or kind not in KINDS:
        raise LogError(f"unknown kind of event: {kind!r}")
    fields = FIELDS[KINDS[kind]]
    required = sum(field.default is attrs.NOTHING for field in fields)
    if not required <= len(values) <= len(fields):
        raise LogError(f"a `{kind}` row has {required} to {len(fields)} values, not {len(values)}")
    pairs = zip(fields, values, strict=False)
    try:
        return KINDS[kind](*(_decode(field.name, value) for field, value in pairs))
    except (TypeError, ValueError) as error:
        raise LogError(f"a bad `{kind}` row: {error}") from None


def _decode(name: str, value: Any) -> Any:
    if name in SCALARS:
        # bool is an int to isinstance, and no count or index is a bool.
        if not isinstance(value, SCALARS[name]) or (type(value) is bool and name != "background"):
            raise TypeError(f"{name} cannot be {value!r}")
        return value
    if name in CHOICES:
        if value not in CHOICES[name]:
            raise ValueError(f"{name} cannot be {value!r}")
        return value
    return DECODE[name](value)


def _same(value: Any) -> JSON:
    return value  # type: ignore[no-any-return]  # scalars are their own JSON


def _usage(usage: Usage) -> JSON:
    return [
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.cache_write_tokens,
    ]


def _read_usage(value: Any) -> Usage:
    if not all(type(count) is int for count in value) or len(value) != 5:
        raise ValueError(f"usage cannot be {value!r}")
    return Usage(*value)


def _bytes(token: str, data: bytes) -> JSON:
    return None if data == token.encode() else list(data)


def _read_bytes(token: str, data: list[int] | None) -> bytes:
    return token.encode() if data is None else bytes(data)


def _logprobs(logprobs: tuple[Logprob, ...]) -> JSON:
    return [
        [
            entry.token,
            entry.logprob,
            _bytes(entry.token, entry.data),
            [[top.token, top.logprob, _bytes(top.token, top.data)] for top in entry.top],
        ]
        for entry in logprobs
    ]


def _read_logprobs(value: Any) -> tuple[Logprob, ...]:
    return tuple(
        Logprob(
            token,
            float(logprob),
            _read_bytes(token, data),
            tuple(TopLogprob(name, float(at), _read_bytes(name, raw)) for name, at, raw in top),
        )
        for token, logprob, data, top in value
    )


def _read_echo(value: Any) -> Mapping[str, JSON]:
    if not isinstance(value, dict):
        raise TypeError(f"echo cannot be {value!r}")
    return value


FIELDS: dict[type[Event], Sequence[attrs.Attribute[Any]]] = {
    event: tuple(getattr(event, "__attrs_attrs__"))  # noqa: B009  # not in the type's own view
    for event in EVENTS
}
ENCODE: dict[str, Callable[[Any], JSON]] = {"usage": _usage, "logprobs": _logprobs}
DECODE: dict[str, Callable[[Any], Any]] = {
    "usage": _read_usage,
    "logprobs": _read_logprobs,
    "echo": _read_echo,
}
