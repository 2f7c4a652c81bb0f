"""A call as one JSON object that holds the name and the arguments.

The keys may come in any order. Of a key that comes twice the first one counts: it may have been
sent. Arguments are the model's own JSON text; those that are null or an empty string are none.

The call opens with its name. After its arguments the envelope is markup, and ends with the closer
or, where that is missing, with the first text that is neither.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput
from responsory.immutable import immutable
from responsory.segments.formats.json_arguments import json_arguments
from responsory.segments.formats.spec import CallFormat, CallReader, Part, Verdict
from responsory.segments.json_value import SPACE, JsonValue, spelled_out
from responsory.segments.written import Exactly, InOrder, OneOf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written

NONE_AT_ALL = ('""', "null")
"""Arguments that say that there are none."""


@immutable
class JsonEnvelope(CallFormat):
    """``name``, ``arguments``: the keys of the envelope; ``closer`` ends it, and may be empty."""

    closer: str
    name: str = "name"
    arguments: str = "arguments"

    @property
    def between(self) -> str:
        return "\n"

    def reader(self, tools: Tools) -> CallReader:
        return EnvelopeReader(self, tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        return InOrder(
            (Exactly("\n"), OneOf(tuple(map(self._call, tools))), Exactly(f"\n{self.closer}"))
        )

    def _call(self, tool: Tool) -> Written:
        head = f'{{"{self.name}": {json.dumps(tool.name)}, "{self.arguments}": '
        return InOrder((Exactly(head), json_arguments(tool), Exactly("}")))


class Place(Enum):
    """What is read next, or is being read."""

    BRACE = auto()
    KEY = auto()
    """A key, or the end of the envelope."""
    IN_KEY = auto()
    COLON = auto()
    IN_NAME = auto()
    IN_ARGUMENTS = auto()
    IN_OTHER = auto()
    COMMA = auto()
    """A comma, or the end of the envelope."""
    CLOSER = auto()


IN_VALUE = frozenset({Place.IN_KEY, Place.IN_NAME, Place.IN_ARGUMENTS, Place.IN_OTHER})
AFTER_CHAR = {
    (Place.BRACE, "{"): Place.KEY,
    (Place.KEY, "}"): Place.CLOSER,
    (Place.COMMA, ","): Place.KEY,
    (Place.COMMA, "}"): Place.CLOSER,
}


class EnvelopeReader(CallReader):
    """See the module. ``verdict`` as in ``CallReader``."""

    __slots__ = ("_empty", "_first", "_form", "_has_arguments", "_held", "_key", "_name", "_parts",
                 "_place", "_spelled", "_tools", "_value")  # fmt: skip

    def __init__(self, form: JsonEnvelope, tools: Tools) -> None:
        super().__init__()
        self._form = form
        self._tools = tools
        self._place = Place.BRACE
        self._value = JsonValue()
        self._spelled: list[str] = []
        """The key or the name that is being read."""
        self._key: str | None = None
        self._name: str | None = None
        self._held: list[str] = []
        """Arguments from before the name."""
        self._first = ""
        """The beginning of the arguments, while they may be none at all."""
        self._empty = True
        """No text of the arguments was given out or is held for the name."""
        self._has_arguments = False
        """They are complete."""
        self._parts: list[Part] = []

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """Raw text to parts; see ``CallReader``."""
        self._parts = []
        end = len(text)
        while at < end and self.verdict is Verdict.READING:
            if self._place in IN_VALUE:
                at = self._read_value(text, at)
                continue
            space = SPACE.match(text, at)
            at = space.end() if space else at
            if at == end:
                break
            if self._place is Place.CLOSER:
                closer = self._form.closer
                seen = text[at : at + len(closer)]
                if seen != closer and closer.startswith(seen):
                    break  # more of it may come
                at += len(closer) if seen == closer else 0
                self._over(at)
            else:
                at = self._read_mark(text, at)
        if self._name is not None and self.verdict is not Verdict.OVER:
            self._parts.append(Part(at))
        return at, self._parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call with all its arguments is closed, unless it was cut; see ``CallReader``."""
        complete = self._has_arguments or self._place is Place.CLOSER
        if complete:
            return [] if cut else [CallClosed()]
        return [CallInput(self._first)] if self._first else []

    def _read_mark(self, text: str, at: int) -> int:
        """One character between values."""
        char, place = text[at], self._place
        following = AFTER_CHAR.get((place, char))
        if following is not None:
            self._place = following
            if following is Place.CLOSER and self._name is None:
                self.verdict = Verdict.PROSE
            elif following is Place.CLOSER and not self._form.closer:
                self._over(at + 1)
            return at + 1
        if place is Place.KEY and char == '"':
            self._begin(Place.IN_KEY)
            return at
        if place is Place.COLON and char == ":":
            self._begin(self._place_of_value())
            return at + 1
        self._misfit()
        return at

    def _place_of_value(self) -> Place:
        if self._key == self._form.name and self._name is None:
            return Place.IN_NAME
        if self._key == self._form.arguments and not self._has_arguments:
            return Place.IN_ARGUMENTS
        return Place.IN_OTHER

    def _begin(self, place: Place) -> None:
        self._place, self._value = place, JsonValue()
        self._spelled.clear()

    def _read_value(self, text: str, at: int) -> int:
        value, place = self._value, self._place
        end = value.read(text, at)
        if place is Place.IN_ARGUMENTS:
            self._take(text[at:end], end)
        elif place is not Place.IN_OTHER:
            self._spelled.append(text[at:end])
        if value.broken:
            self._misfit()
        elif value.complete:
            self._after_value(place, end)
        return end

    def _after_value(self, place: Place, end: int) -> None:
        self._place = Place.COMMA
        if place is Place.IN_ARGUMENTS:
            self._has_arguments = True
            if self._first not in NONE_AT_ALL:
                self._give(self._first, end)
            self._first = ""
        elif place is Place.IN_KEY:
            self._place = Place.COLON
            self._key = spelled_out("".join(self._spelled))
        elif place is Place.IN_NAME:
            self._open(spelled_out("".join(self._spelled)), end)

    def _open(self, name: str | None, end: int) -> None:
        """The header is there, if that is a name."""
        opened = self._tools.opened(name)
        if opened is None:
            self.verdict = Verdict.PROSE
            return
        self._name = opened.name
        self._parts.append(Part(end, opened))
        if self._held:
            self._parts.append(Part(end, CallInput("".join(self._held))))
            self._held.clear()

    def _take(self, text: str, end: int) -> None:
        """A piece of the arguments; white space before them is none of it."""
        if self._empty:
            first = self._first = (self._first + text).lstrip()
            if any(none.startswith(first) for none in NONE_AT_ALL):
                return
            text, self._first, self._empty = first, "", False
        self._give(text, end)

    def _give(self, text: str, end: int) -> None:
        if self._name is None:
            self._held.append(text)
        elif text:
            self._parts.append(Part(end, CallInput(text)))

    def _misfit(self) -> None:
        """What stands here is not of an envelope."""
        if self._name is None:
            self.verdict = Verdict.PROSE
        elif self._has_arguments:
            self._place = Place.CLOSER
        else:
            self.verdict = Verdict.BROKEN

    def _over(self, end: int) -> None:
        self._parts.append(Part(end, CallClosed()))
        self.verdict = Verdict.OVER
