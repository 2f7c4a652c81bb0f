"""The events of the Responses stream: what each does, and the keys it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.check.shapes import ABSENT, ANY, INDEX, LIST, NAME, OBJECT, STRING, Kind, Shape
from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.check.profiles import Profile


class Does(Enum):
    """What an event does to the response, to an item, or to a part."""

    CREATE = auto()
    STATUS = auto()
    END = auto()
    FAIL = auto()
    ERROR = auto()
    ADD_ITEM = auto()
    END_ITEM = auto()
    ADD_PART = auto()
    DELTA = auto()
    SAY = auto()
    """The part's or call's own ``done``, with the whole text."""
    END_PART = auto()
    ANNOTATE = auto()
    PASS = auto()
    """Nothing: audio."""
    BEAT = auto()
    """Nothing, and it may come before the response too: a sign of life, a server's own event."""


@immutable
class PartKind:
    """A kind of part. ``item``: whose part it is. ``items_key``: the item's list of parts;
    ``index``: the key of the place in it. ``text``: the part's and the done event's key."""

    type: str
    item: str
    part_event: str
    items_key: str
    index: str
    text: str


@immutable
class CallKind:
    """A kind of call. ``stem``: of its events. ``text``: the item's and the done event's key."""

    type: str
    stem: str
    text: str


CONTENT = ("response.content_part", "content", "content_index")
SUMMARY = ("response.reasoning_summary_part", "summary", "summary_index")
OUTPUT_TEXT = PartKind("output_text", "message", *CONTENT, "text")
REFUSAL = PartKind("refusal", "message", *CONTENT, "refusal")
REASONING_TEXT = PartKind("reasoning_text", "reasoning", *CONTENT, "text")
SUMMARY_TEXT = PartKind("summary_text", "reasoning", *SUMMARY, "text")
REASONING_PART = "response.reasoning_part"
"""What vLLM calls ``response.content_part`` in reasoning."""
PARTS: Mapping[str, PartKind] = {
    kind.type: kind for kind in (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY_TEXT)
}
CALLS: Mapping[str, CallKind] = {
    kind.type: kind
    for kind in (
        CallKind("function_call", "response.function_call_arguments", "arguments"),
        CallKind("custom_tool_call", "response.custom_tool_call_input", "input"),
    )
}
ITEMS = frozenset({"message", "reasoning", *CALLS})
"""Item types whose insides are known."""


@immutable
class EventKind:
    """``part`` or ``call``: what it is about, for the events of one kind alone. ``own`` is False
    for events that this library does not send. ``index``: the key of the part's place. ``padded``:
    it can have obfuscation."""

    does: Does
    shape: Shape
    part: PartKind | None = None
    call: CallKind | None = None
    own: bool = True
    index: str = "content_index"
    padded: bool = False


ENVELOPE = {"type": STRING}
SEQUENCE = {"sequence_number": INDEX}
PADDING = {"obfuscation": STRING}


def _shape(
    due: Mapping[str, Kind], loose: Mapping[str, Kind] | None = None, *, padded: bool = False
) -> Shape:
    exact = {"obfuscation": NAME if padded else ABSENT}
    return Shape({**ENVELOPE, **due}, {**SEQUENCE, **(loose or {})}, PADDING, exact)


IN_ITEM = {"output_index": INDEX}
ITEM = _shape({**IN_ITEM, "item": OBJECT})
SNAPSHOT = _shape({"response": OBJECT})
PLACE = {"item_id": STRING, **IN_ITEM}
SIGN = Shape(ENVELOPE, SEQUENCE, open=True)
FAILURE = _shape(
    {}, {"code": STRING, "message": STRING, "param": STRING.or_null(), "error": OBJECT}
)

SHARED: Mapping[str, EventKind] = {
    "response.created": EventKind(Does.CREATE, SNAPSHOT),
    "response.queued": EventKind(Does.STATUS, SNAPSHOT),
    "response.in_progress": EventKind(Does.STATUS, SNAPSHOT),
    "response.completed": EventKind(Does.END, SNAPSHOT),
    "response.incomplete": EventKind(Does.END, SNAPSHOT),
    "response.failed": EventKind(Does.FAIL, SNAPSHOT),
    "error": EventKind(Does.ERROR, FAILURE),
    "response.output_item.added": EventKind(Does.ADD_ITEM, ITEM),
    "response.output_item.done": EventKind(Does.END_ITEM, ITEM),
    "response.output_text.annotation.added": EventKind(
        Does.ANNOTATE,
        _shape({**PLACE, "content_index": INDEX, "annotation": ANY}, {"annotation_index": INDEX}),
        OUTPUT_TEXT,
        own=False,
    ),
}
AMBIENT: Mapping[str, Does] = {
    "keepalive": Does.BEAT,
    "response.audio.delta": Does.PASS,
    "response.audio.done": Does.PASS,
    "response.audio.transcript.delta": Does.PASS,
    "response.audio.transcript.done": Does.PASS,
}
"""Events of the OpenAI API that belong to no item."""
BEATS = tuple(name for name, does in AMBIENT.items() if does is Does.BEAT)
RESERVED = "response."
"""What the types of the API's own events begin with, ``error`` and ``keepalive`` apart."""
BEAT = re.compile(r"keepalive|(?!response\.)[a-z0-9_-]+[:.][\w.:-]+")
"""What may come before the response and shows that one is to come. ``acme:trace`` is a server's
own event as the Open Responses specification has it named; others write ``codex.rate_limits``."""


def _parts(profile: Profile) -> dict[str, EventKind]:
    stems: list[tuple[str, PartKind]] = [
        ("response.output_text", OUTPUT_TEXT),
        ("response.refusal", REFUSAL),
        *((stem, REASONING_TEXT) for stem in profile.reasoning),
        ("response.reasoning_summary_text", SUMMARY_TEXT),
    ]
    kinds: dict[str, EventKind] = {}
    for stem, part in stems:
        own = part is not SUMMARY_TEXT
        place = {**PLACE, part.index: INDEX}
        logprobs = {"logprobs": LIST} if part is OUTPUT_TEXT else None
        padded = part is not REFUSAL
        shape = _shape({**place, "delta": STRING}, logprobs, padded=padded)
        kinds[f"{stem}.delta"] = EventKind(Does.DELTA, shape, part, None, own, part.index, padded)
        kinds[f"{stem}.done"] = EventKind(
            Does.SAY, _shape({**place, part.text: STRING}, logprobs), part, None, own, part.index
        )
        shape = _shape({**place, "part": OBJECT})
        # Of one kind alone where the kind has part events of its own.
        only = None if own else part
        for does, end in ((Does.ADD_PART, "added"), (Does.END_PART, "done")):
            kinds[f"{part.part_event}.{end}"] = EventKind(does, shape, only, None, own, part.index)
            if part is REASONING_TEXT:
                kinds[f"{REASONING_PART}.{end}"] = EventKind(does, shape, part, own=False)
    return kinds


def _calls() -> dict[str, EventKind]:
    kinds: dict[str, EventKind] = {}
    for call in CALLS.values():
        name = {"name": STRING} if call.type == "function_call" else None
        padded = call.type == "function_call"
        shape = _shape({**PLACE, "delta": STRING}, padded=padded)
        kinds[f"{call.stem}.delta"] = EventKind(Does.DELTA, shape, None, call, padded=padded)
        kinds[f"{call.stem}.done"] = EventKind(
            Does.SAY, _shape({**PLACE, call.text: STRING}, name), None, call
        )
    return kinds


def vocabulary(profile: Profile) -> Mapping[str, EventKind]:
    """Every event type that the profile's streams may have outside items of unknown types."""
    ambient = {name: EventKind(does, SIGN, own=False) for name, does in AMBIENT.items()}
    return {**SHARED, **_parts(profile), **_calls(), **ambient}
