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
from responsory.segments.formats.arguments_text import ArgumentsText
from responsory.segments.formats.json_arguments import json_arguments
from responsory.segments.formats.spec import CallFormat, CallReader, Part, Verdict
from responsory.segments.json_value import SPACE, JsonValue, spelled_out
from responsory.segments.written import Exactly, InOrder, OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written


@immutable
class JsonEnvelope(CallFormat):
    """``names``, ``arguments``: the keys of the envelope under which these stand, the first being
    the one that models write; ``closer`` ends it, and may be empty. ``begun``: the opener has the
    first bracket. ``first``: the keys with which it may begin, where not any can."""

    closer: str  # pyright: ignore[reportIncompatibleMethodOverride]
    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments",)
    begun: bool = False
    first: frozenset[str] = frozenset()
    lead: str = "\n"
    """White space that models write before it and, if it has a closer, before that."""
    between: str = "\n"  # pyright: ignore[reportIncompatibleMethodOverride]

    def after_bracket(self) -> JsonEnvelope:
        """The same behind an opener that has the first bracket."""
        return JsonEnvelope(
            self.closer, self.names, self.arguments, True, self.first, self.lead, self.between
        )

    def reader(self, tools: Tools) -> CallReader:
        return EnvelopeReader(self, tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        end = f"{self.lead}{self.closer}" if self.closer else ""
        return InOrder((Exactly(self.lead), OneOf(tuple(map(self.one, tools))), Exactly(end)))

    def one(self, tool: Tool) -> Written:
        """The envelope of a call of the tool."""
        brace = "" if self.begun else "{"
        head = f'{brace}"{self.names[0]}": {json.dumps(tool.name)}, "{self.arguments[0]}": '
        return InOrder((Exactly(head), json_arguments(tool), Exactly("}")))


class Place(Enum):
    """What is read next, or is being read."""

    BRACE = auto()
    KEY = auto()
    """A key, or the end of the envelope."""
    IN_KEY = auto()
    COLON = auto()
    VALUE = auto()
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

    __slots__ = ("_arguments", "_form", "_held", "_key", "_name", "_nested", "_parts", "_place",
                 "_spelled", "_tools", "_value")  # fmt: skip

    def __init__(self, form: JsonEnvelope, tools: Tools) -> None:
        super().__init__()
        self._form = form
        self._tools = tools
        self._place = Place.KEY if form.begun else Place.BRACE
        self._value = JsonValue()
        self._spelled: list[str] = []
        """The key or the name that is being read."""
        self._key: str | None = None
        self._nested = False
        """Inside the object of a key ``function``."""
        self._name: str | None = None
        self._arguments: ArgumentsText | None = None
        self._held: list[str] = []
        """Arguments from before the name."""
        self._parts: list[Part] = []

    @property
    def _has_arguments(self) -> bool:
        return self._arguments is not None and self._arguments.complete

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

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        arguments = self._arguments
        inside = arguments is not None and self._place is Place.IN_ARGUMENTS
        return arguments.glance if arguments is not None and inside else None

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call with all its arguments is closed, unless it was cut; see ``CallReader``."""
        if self._has_arguments or self._place is Place.CLOSER:
            return [] if cut else [CallClosed()]
        held = "" if self._arguments is None else self._arguments.rest()
        return [CallInput(held)] if held else []

    def _read_mark(self, text: str, at: int) -> int:
        """One character between values."""
        char, place = text[at], self._place
        following = AFTER_CHAR.get((place, char))
        if following is Place.CLOSER and self._nested:
            self._nested = False
            following = Place.COMMA
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
            self._place = Place.VALUE
            return at + 1
        if place is Place.VALUE:
            return self._begin_value(at, char)
        self._misfit()
        return at

    def _begin_value(self, at: int, char: str) -> int:
        """The value of the key begins with ``char``."""
        key = self._key
        if key == "function" and char == "{" and not self._nested and self._name is None:
            self._nested, self._place = True, Place.KEY
            return at + 1
        if key in self._form.names and self._name is None:
            self._begin(Place.IN_NAME)
        elif key in self._form.arguments and self._arguments is None:
            self._arguments = ArgumentsText()
            self._place = Place.IN_ARGUMENTS
        else:
            self._begin(Place.IN_OTHER)
        return at

    def _begin(self, place: Place) -> None:
        self._place, self._value = place, JsonValue()
        self._spelled.clear()

    def _read_value(self, text: str, at: int) -> int:
        arguments = self._arguments
        if self._place is Place.IN_ARGUMENTS and arguments is not None:
            end, shown = arguments.read(text, at)
            self._give(shown, end)
            if arguments.broken:
                self._misfit()
            elif arguments.complete:
                self._place = Place.COMMA
            return end
        value = self._value
        end = value.read(text, at)
        if self._place is not Place.IN_OTHER:
            self._spelled.append(text[at:end])
        if value.broken:
            self._misfit()
        elif value.complete:
            self._after_value(end)
        return end

    def _after_value(self, end: int) -> None:
        place, self._place = self._place, Place.COMMA
        if place is Place.IN_KEY:
            self._place = Place.COLON
            key, first = spelled_out("".join(self._spelled)), self._form.first
            if self._key is None and first and key not in first:
                self.verdict = Verdict.PROSE
            self._key = key or ""
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

    def _give(self, text: str, end: int) -> None:
        if self._name is None and text:
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
