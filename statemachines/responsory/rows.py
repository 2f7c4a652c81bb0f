"""Events as stored rows: ``[kind, seq, …]``, plain JSON values in the order of the event's fields.

Fields at the end that hold their default are left out. Rows come from disk, so reading checks them:
an unknown kind, a missing field or a value that the field cannot hold is a LogError; so is a value
in an event that would not be read again. ``row_values`` says what each field holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

import attrs

from responsory import events as ev
from responsory.checks import Check, count, echo, flag, one_of, optional, stop, text
from responsory.errors import LogError, shown
from responsory.row_values import CUTS, IDS, LOGPROBS, TOKENS, USAGE, Field
from responsory.values import JSON, ItemStatus, ItemType, PartType, Phase

Row: TypeAlias = list[JSON]
"""``[kind, seq, …]``."""

CHECKS: Mapping[str, Check] = {
    "seq": count,
    "id": text,
    "created_at": count,
    "background": flag,
    "echo": echo,
    "item": count,
    "part": count,
    "phase": one_of(None, *get_args(Phase)),
    "name": optional(text),
    "call_id": optional(text),
    "text": text,
    "status": one_of(*get_args(ItemStatus)),
    "completed_at": optional(count),
    "stop": optional(stop),
    "reason": one_of("max_output_tokens", "content_filter"),
    "code": text,
    "message": text,
}
"""Fields that are their own JSON."""

TYPES: Mapping[type[ev.Event], Check] = {
    ev.ItemAdded: one_of(*get_args(ItemType)),
    ev.PartAdded: one_of(*get_args(PartType)),
}


class Shape(NamedTuple):
    """The fields of a kind's rows, ``seq`` first; the first ``required`` have no default."""

    event: type[ev.Event]
    names: tuple[str, ...]
    fields: tuple[Field, ...]
    defaults: tuple[Any, ...]
    required: int


def _shape(event: type[ev.Event]) -> Shape:
    attributes: Sequence[attrs.Attribute[Any]]
    attributes = getattr(event, "__attrs_attrs__")  # noqa: B009  # not in the type's own view
    names = tuple(attribute.name for attribute in attributes)
    special = {"usage": USAGE, "logprobs": LOGPROBS, "tokens": TOKENS, "ids": IDS, "cuts": CUTS}
    if event in TYPES:
        special["type"] = Field(TYPES[event], TYPES[event])
    fields = tuple(special.get(name) or Field(CHECKS[name], CHECKS[name]) for name in names)
    defaults = tuple(attribute.default for attribute in attributes)
    return Shape(event, names, fields, defaults, defaults.count(attrs.NOTHING))


SHAPES: Mapping[type[ev.Event], Shape] = {event: _shape(event) for event in ev.EVENTS}
KINDS: Mapping[str, Shape] = {event.kind: shape for event, shape in SHAPES.items()}


def named(event: ev.Event) -> str:
    """The event in a message."""
    return f"{type(event).__name__} with seq {event.seq}"


def checked_row(value: JSON) -> Row:
    """The value as a row of any version: a list that begins with a kind and a sequence number.
    Raises LogError."""
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise LogError(f"not a row: {shown(value)}")
    kind, seq = value[:2]
    if not isinstance(kind, str):
        raise LogError(f"unknown kind of event: {shown(kind)}")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise LogError(f"seq cannot be {shown(seq)}")
    return value if isinstance(value, list) else [*value]


def to_row(event: ev.Event) -> Row:
    """``[kind, seq, …]``. Raises LogError for a value that ``from_row`` refuses."""
    shape = SHAPES[type(event)]
    values = [getattr(event, name) for name in shape.names]
    while values[-1] == shape.defaults[len(values) - 1]:
        values.pop()
    row: Row = [event.kind]
    for name, field, value in zip(shape.names, shape.fields, values, strict=False):
        try:
            row.append(field.write(value))
        except ValueError as error:
            raise LogError(f"a bad `{event.kind}` row: {name} {error}") from None
    return row


def from_row(row: JSON) -> ev.Event:
    """The event of a row. Raises LogError."""
    kind, *values = checked_row(row)
    shape = KINDS.get(str(kind))
    if shape is None:
        raise LogError(f"unknown kind of event: {shown(kind)}")
    if not shape.required <= len(values) <= len(shape.fields):
        wanted = f"{shape.required} to {len(shape.fields)}"
        raise LogError(f"a `{kind}` row has {wanted} values, not {len(values)}")
    read: list[Any] = []
    for name, field, value in zip(shape.names, shape.fields, values, strict=False):
        try:
            read.append(field.read(value))
        except ValueError as error:
            raise LogError(f"a bad `{kind}` row: {name} {error}") from None
    return shape.event(*read)
