"""A call whose arguments stand between tags, one after another; they become one JSON object.

The keys are in the model's order, with ``, `` and ``: `` between them. What a value is tells its
tag, where the family has a flag for it, or else the schema of the tool. White space between tags is
markup; that inside a value is the value's, but for the line ends that a family puts around it.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput
from responsory.immutable import immutable
from responsory.segments.formats.phrase import Phrase
from responsory.segments.formats.spec import CallFormat, CallReader, Part, Verdict
from responsory.segments.formats.tagged_value import TaggedValue
from responsory.segments.formats.tagged_written import TagsWritten, tagged_written
from responsory.segments.formats.value_types import ALL, property_types
from responsory.segments.json_value import SPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written
    from responsory.values import JSON

STRING = frozenset({"string"})
TYPED = ALL - STRING
MOST_SPACE = 256
"""Characters behind a tag in which it is looked for what follows."""


@immutable
class TaggedCalls(CallFormat):
    """How it is read and written.

    ``header``: the phrase with the gap ``name``; it may go on to ``then``, the beginning of the
    first parameter or the end, where only that tells a header from prose; ``first`` is that
    beginning, and the phrase behind it. ``parameter``: the phrase that leads to a value, with the
    gap ``key``, and maybe a gap ``string`` that is ``true`` or ``false``; ``value_end``: the tag
    behind a value. ``end``: the phrase that ends the call. ``lines``: a line end on either side of
    a value is markup.
    """

    header: Phrase
    parameter: Phrase
    value_end: str
    end: Phrase
    write: TagsWritten
    lines: bool = False
    between: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]
    first: tuple[str, Phrase] = ("", Phrase())

    @property
    def closer(self) -> str:
        return ""

    def reader(self, tools: Tools) -> CallReader:
        return TaggedReader(self, tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        return tagged_written(self.write, self.value_end, tools, self._is_key)

    def _is_key(self, name: str) -> bool:
        before, behind, _ = self.write.key
        found = self.parameter.match(before + name + behind, 0)
        return found is not None and found["key"] == name


class Place(Enum):
    """What is read."""

    HEADER = auto()
    TAGS = auto()
    VALUE = auto()


class TaggedReader(CallReader):
    """See the module and ``CallReader``."""

    __slots__ = ("_bare", "_custom", "_ended", "_form", "_parameter", "_place", "_schema", "_seen",
                 "_start", "_tools", "_value")  # fmt: skip

    def __init__(self, form: TaggedCalls, tools: Tools) -> None:
        super().__init__()
        self._form = form
        self._tools = tools
        self._schema: Mapping[str, JSON] | None = None
        self._custom = False
        self._place = Place.HEADER
        self._seen = ""
        """The header, while it is not whole."""
        self._value = TaggedValue(STRING)
        self._start = False
        """No text of the value came."""
        self._ended = False
        """The tag behind the value came, and nothing behind that yet."""
        self._bare = True
        """No parameter came."""
        self._parameter = form.parameter
        """The phrase that leads to the next value."""

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        if self._place is not Place.VALUE or self._start:
            return None
        if self._value.is_string:
            return self._look
        return self._look_inside if self._value.literal is not None else None

    def _look(self, text: str) -> str | None:
        """Text of a string that is the same in JSON, and can be no part of a tag."""
        plain = text.isprintable() and self._form.value_end[0] not in text
        return text if plain and '"' not in text and "\\" not in text else None

    def _look_inside(self, text: str) -> str | None:
        """The same of text in a string of an array or an object."""
        literal = self._value.literal
        if literal is None or self._form.value_end[0] in text:
            return None
        return literal.glance(text)

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """Raw text to parts; see ``CallReader``."""
        parts: list[Part] = []
        if self._place is Place.HEADER:
            at = self._read_header(text, at, parts)
        before = -1
        while self.verdict is Verdict.READING and self._place is not Place.HEADER and at != before:
            before, place = at, self._place
            at = (self._read_value if place is Place.VALUE else self._read_tags)(text, at, parts)
            if self._place is not place:
                before = -1
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call whose last value is whole is closed, unless it was cut; see ``CallReader``."""
        rest = ""
        if self._place is Place.VALUE:
            if not self._ended:
                return []
            rest = self._value.end()
        if not cut and not self._bare:
            rest += "}"
        told: list[CallInput | CallClosed] = [CallInput(rest)] if rest else []
        return told if cut else [*told, CallClosed()]

    def _read_header(self, text: str, at: int, parts: list[Part]) -> int:
        before = len(self._seen)
        self._seen += text[at:]
        found = self._form.header.match(self._seen, 0)
        if found is None:
            if not self._form.header.may_come(self._seen, 0):
                self.verdict = Verdict.PROSE
            return len(text)
        opened = self._tools.opened(found["name"])
        if opened is None:
            self.verdict = Verdict.PROSE
            return len(text)
        self._schema = self._tools.parameters(opened.name)
        self._custom = opened.kind == "custom"
        end = at + found.end() - before
        self._seen = ""
        self._place = Place.TAGS
        parts.append(Part(end, opened))
        begun = found.groupdict().get("then")
        if begun is not None and begun == self._form.first[0]:
            self._parameter = self._form.first[1]
        elif begun is not None:
            parts.append(Part(end, CallClosed()))
            self.verdict = Verdict.OVER
        return end

    def _read_tags(self, text: str, at: int, parts: list[Part]) -> int:
        """What stands between two values."""
        form = self._form
        space = SPACE.match(text, at)
        at = space.end() if space else at
        if found := self._parameter.match(text, at):
            self._parameter = form.parameter
            self._begin(found["key"], found.groupdict().get("string"), found.end(), parts)
            return found.end()
        found = form.end.match(text, at)
        if found is None and (form.end.may_come(text, at) or self._parameter.may_come(text, at)):
            return at
        at = found.end() if found else at
        if not self._bare:
            parts.append(Part(at, CallInput("}")))
        parts.append(Part(at, CallClosed()))
        self.verdict = Verdict.OVER
        return at

    def _begin(self, key: str, string: str | None, end: int, parts: list[Part]) -> None:
        """The value of ``key`` begins at ``end``."""
        if string is not None:
            types = STRING if string == "true" else TYPED
        elif self._custom:
            types = STRING
        else:
            types = property_types(self._schema, key)
        self._value = TaggedValue(types)
        separator = "{" if self._bare else ", "
        head = f"{separator}{json.dumps(key, ensure_ascii=False)}: {self._value.begin()}"
        parts.append(Part(end, CallInput(head)))
        self._place, self._bare, self._start = Place.VALUE, False, self._form.lines

    def _read_value(self, text: str, at: int, parts: list[Part]) -> int:
        """Text up to the tag behind the value; what may belong to that is left."""
        form = self._form
        if self._start and at < len(text):
            self._start = False
            at += text[at] == "\n"
        self._ended = False
        close = self._find_end(text, at)
        stop = held_from(text, at, form.value_end) if close < 0 else close
        if form.lines and stop > at and text[stop - 1] == "\n":
            stop -= 1
        if stop > at and (shown := self._value.add(text[at:stop])):
            parts.append(Part(stop, CallInput(shown)))
        if close < 0 or self._ended:
            return stop
        end = close + len(form.value_end)
        if shown := self._value.end():
            parts.append(Part(end, CallInput(shown)))
        self._place = Place.TAGS
        return end

    def _find_end(self, text: str, at: int) -> int:
        """Where the tag behind the value stands; -1 if it does not.

        It is one where another tag follows, or nothing: then ``_ended`` is set, since it is not
        certain yet. Before other text it is text itself, but not with ``MOST_SPACE`` between them.
        """
        tag = self._form.value_end
        close = text.find(tag, at)
        while close >= 0:
            end = close + len(tag)
            space = SPACE.match(text, end, end + MOST_SPACE)
            behind = space.end() if space else end
            if behind == end + MOST_SPACE or text[behind : behind + 1] in ("", "<"):
                self._ended = behind == len(text) < end + MOST_SPACE
                return close
            close = text.find(tag, end)
        return -1


def held_from(text: str, at: int, closer: str) -> int:
    """Where the longest suffix of ``text[at:]`` begins that may become the closer."""
    for begin in range(max(at, len(text) - len(closer) + 1), len(text)):
        if closer.startswith(text[begin:]):
            return begin
    return len(text)
