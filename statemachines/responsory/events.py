"""Events: the truth about a response. The log of them is the response.

One event is one frame of the Responses stream (Cancelled alone has none). ``seq`` is dense from 0
and is the offset in the log. Fields are minimal: ``item`` and ``part`` are indexes, ids are derived
from them (``responsory.ids``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.values import JSON, ItemStatus, ItemType, Logprob, PartType, Phase, Usage


@immutable
class Event:
    """``kind`` names the event in a stored row."""

    kind: ClassVar[str]
    seq: int


@immutable
class Created(Event):
    kind: ClassVar[str] = "created"
    id: str
    created_at: int
    background: bool
    echo: Mapping[str, JSON]


@immutable
class Queued(Event):
    kind: ClassVar[str] = "queued"


@immutable
class InProgress(Event):
    kind: ClassVar[str] = "in_progress"


@immutable
class ItemAdded(Event):
    """``name`` for calls; ``call_id`` for calls whose family supplies one; ``phase`` for messages
    whose family marks it."""

    kind: ClassVar[str] = "item_added"
    item: int
    type: ItemType
    phase: Phase | None = None
    name: str | None = None
    call_id: str | None = None


@immutable
class PartAdded(Event):
    kind: ClassVar[str] = "part_added"
    item: int
    part: int
    type: PartType


@immutable
class TextDelta(Event):
    kind: ClassVar[str] = "text_delta"
    item: int
    part: int
    text: str
    logprobs: tuple[Logprob, ...] = ()


@immutable
class TextDone(Event):
    kind: ClassVar[str] = "text_done"
    item: int
    part: int
    text: str
    logprobs: tuple[Logprob, ...] = ()


@immutable
class RefusalDelta(Event):
    kind: ClassVar[str] = "refusal_delta"
    item: int
    part: int
    text: str


@immutable
class RefusalDone(Event):
    kind: ClassVar[str] = "refusal_done"
    item: int
    part: int
    text: str


@immutable
class ReasoningDelta(Event):
    kind: ClassVar[str] = "reasoning_delta"
    item: int
    part: int
    text: str


@immutable
class ReasoningDone(Event):
    kind: ClassVar[str] = "reasoning_done"
    item: int
    part: int
    text: str


@immutable
class PartDone(Event):
    kind: ClassVar[str] = "part_done"
    item: int
    part: int


@immutable
class InputDelta(Event):
    kind: ClassVar[str] = "input_delta"
    item: int
    text: str


@immutable
class InputDone(Event):
    kind: ClassVar[str] = "input_done"
    item: int
    text: str


@immutable
class ItemDone(Event):
    kind: ClassVar[str] = "item_done"
    item: int
    status: ItemStatus


@immutable
class Completed(Event):
    kind: ClassVar[str] = "completed"
    usage: Usage
    completed_at: int | None = None
    stop: str | int | None = None


@immutable
class Incomplete(Event):
    kind: ClassVar[str] = "incomplete"
    usage: Usage
    reason: Literal["max_output_tokens", "content_filter"]
    stop: str | int | None = None


@immutable
class Errored(Event):
    kind: ClassVar[str] = "errored"
    code: str
    message: str


@immutable
class Failed(Event):
    kind: ClassVar[str] = "failed"
    usage: Usage
    code: str
    message: str


@immutable
class Cancelled(Event):
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
DELTAS: frozenset[type[Event]] = frozenset({TextDelta, RefusalDelta, ReasoningDelta, InputDelta})
"""What compaction drops: each part's Done event holds the sum."""
ENDINGS: frozenset[type[Event]] = frozenset({Completed, Incomplete, Failed, Cancelled})
"""Exactly one of these ends a log."""
