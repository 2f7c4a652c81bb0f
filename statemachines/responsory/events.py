"""Events: the truth about a response. The log of them is the response.

One event is one frame of the Responses stream (Cancelled alone has none). ``seq`` is dense from 0
and is the offset in the log. Fields are minimal: ``item`` and ``part`` are indexes, ids are derived
from them (``responsory.ids``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.cuts import Cuts
    from responsory.values import (
        JSON,
        ItemStatus,
        ItemType,
        Logprob,
        PartType,
        Phase,
        Tokens,
        Usage,
    )


@immutable
class Event:
    """``kind`` names the event in a stored row."""

    kind: ClassVar[str]
    seq: int


@immutable
class Created(Event):
    """The first event of every log: the response exists. Holds what Accept said."""

    kind: ClassVar[str] = "created"
    id: str
    created_at: int
    background: bool
    echo: Mapping[str, JSON]


@immutable
class Queued(Event):
    """After Created, of a background response: it waits until it is started. Holds nothing more."""

    kind: ClassVar[str] = "queued"


@immutable
class InProgress(Event):
    """After Created, or once a queued response is started: it runs. Holds nothing more."""

    kind: ClassVar[str] = "in_progress"


@immutable
class ItemAdded(Event):
    """An item opens. ``name`` for calls; ``call_id`` for calls whose family supplies one; ``phase``
    for messages whose family marks it."""

    kind: ClassVar[str] = "item_added"
    item: int
    type: ItemType
    phase: Phase | None = None
    name: str | None = None
    call_id: str | None = None


@immutable
class PartAdded(Event):
    """A part opens, in a message or in reasoning. ``part`` is its index in the item."""

    kind: ClassVar[str] = "part_added"
    item: int
    part: int
    type: PartType


@immutable
class TextDelta(Event):
    """A piece of the open ``output_text`` part. ``logprobs`` are of the tokens that begin in it.
    ``tokens``, here and below: what Tokens says, where a request asked for it."""

    kind: ClassVar[str] = "text_delta"
    item: int
    part: int
    text: str
    logprobs: tuple[Logprob, ...] = ()
    tokens: Tokens | None = None


@immutable
class TextDone(Event):
    """The open ``output_text`` part has ended. ``text``, ``logprobs`` and ``ids`` are the whole of
    it. ``cuts`` (see ``responsory.cuts``) in a compacted log alone."""

    kind: ClassVar[str] = "text_done"
    item: int
    part: int
    text: str
    logprobs: tuple[Logprob, ...] = ()
    ids: tuple[int, ...] = ()
    cuts: Cuts = ()


@immutable
class RefusalDelta(Event):
    """A piece of the open ``refusal`` part."""

    kind: ClassVar[str] = "refusal_delta"
    item: int
    part: int
    text: str
    tokens: Tokens | None = None


@immutable
class RefusalDone(Event):
    """The open ``refusal`` part has ended. ``text`` and ``ids`` are the whole of it."""

    kind: ClassVar[str] = "refusal_done"
    item: int
    part: int
    text: str
    ids: tuple[int, ...] = ()


@immutable
class ReasoningDelta(Event):
    """A piece of the open ``reasoning_text`` part."""

    kind: ClassVar[str] = "reasoning_delta"
    item: int
    part: int
    text: str
    tokens: Tokens | None = None


@immutable
class ReasoningDone(Event):
    """The open ``reasoning_text`` part has ended. ``text`` and ``ids`` are the whole of it."""

    kind: ClassVar[str] = "reasoning_done"
    item: int
    part: int
    text: str
    ids: tuple[int, ...] = ()


@immutable
class PartDone(Event):
    """Directly after the Done event of the part's text: the part is closed."""

    kind: ClassVar[str] = "part_done"
    item: int
    part: int


@immutable
class InputDelta(Event):
    """A piece of the open call's arguments (function) or input (custom)."""

    kind: ClassVar[str] = "input_delta"
    item: int
    text: str
    tokens: Tokens | None = None


@immutable
class InputDone(Event):
    """The input of the open call has ended. ``text`` and ``ids`` are the whole of it, empty if none
    came."""

    kind: ClassVar[str] = "input_done"
    item: int
    text: str
    ids: tuple[int, ...] = ()


@immutable
class ItemDone(Event):
    """The item is closed. ``status``: whole, or cut by the end of the response."""

    kind: ClassVar[str] = "item_done"
    item: int
    status: ItemStatus


@immutable
class Completed(Event):
    """The end: the engine stopped by itself. ``completed_at``, ``stop`` and ``ids`` are those of
    Finish: after the ids of all Done events these are the last of the response."""

    kind: ClassVar[str] = "completed"
    usage: Usage
    completed_at: int | None = None
    stop: str | int | None = None
    ids: tuple[int, ...] = ()


@immutable
class Incomplete(Event):
    """The end: the engine was cut by the limit of tokens or by a filter, which ``reason`` says."""

    kind: ClassVar[str] = "incomplete"
    usage: Usage
    reason: Literal["max_output_tokens", "content_filter"]
    stop: str | int | None = None
    ids: tuple[int, ...] = ()


@immutable
class Errored(Event):
    """Directly before Failed: what broke, for the client."""

    kind: ClassVar[str] = "errored"
    code: str
    message: str


@immutable
class Failed(Event):
    """The end: the engine or the server broke. ``code`` and ``message`` as in Errored."""

    kind: ClassVar[str] = "failed"
    usage: Usage
    code: str
    message: str


@immutable
class Cancelled(Event):
    """The end: the client cancelled or went away. No frame tells it."""

    kind: ClassVar[str] = "cancelled"
    usage: Usage


EVENTS: tuple[type[Event], ...] = (
    Created,
    Queued,
    InProgress,
    ItemAdded,
    PartAdded,
    TextDelta,
    TextDone,
    RefusalDelta,
    RefusalDone,
    ReasoningDelta,
    ReasoningDone,
    PartDone,
    InputDelta,
    InputDone,
    ItemDone,
    Completed,
    Incomplete,
    Errored,
    Failed,
    Cancelled,
)
Delta: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | InputDelta
"""What compaction drops: each part's Done event holds the sum."""
Done: TypeAlias = TextDone | RefusalDone | ReasoningDone | InputDone
"""The sum of the deltas before it."""
DELTAS: frozenset[type[Event]] = frozenset(get_args(Delta))
ENDINGS: frozenset[type[Event]] = frozenset({Completed, Incomplete, Failed, Cancelled})
"""Exactly one of these ends a log."""
