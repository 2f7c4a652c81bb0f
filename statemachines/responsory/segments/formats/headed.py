"""A call as a header with the name, and its arguments as JSON text behind it.

The header is a phrase that ends where the arguments begin. Behind these may stand a phrase that
closes the call; where another text stands, the call was closed without. Arguments that are no JSON
text go on to the closer, as they stand.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput
from responsory.immutable import immutable
from responsory.segments.formats.arguments_text import ArgumentsText
from responsory.segments.formats.json_arguments import json_arguments
from responsory.segments.formats.phrase import Phrase
from responsory.segments.formats.spec import CallFormat, CallReader, Part, Verdict
from responsory.segments.json_value import SPACE
from responsory.segments.written import Exactly, InOrder, OneOf

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written


@immutable
class HeadedJson(CallFormat):
    """``header``: the phrase behind the opener, with a gap ``name``.

    ``end``: the phrase behind the arguments; None where nothing closes a call. ``closer``: the
    fixed text in it. ``write``: what a model writes before and behind a name, and behind the
    arguments; ``between``: between two calls. ``call_id``: the call's own id, made of the gaps of
    the header.
    """

    header: Phrase
    end: Phrase | None
    closer: str  # pyright: ignore[reportIncompatibleMethodOverride]
    write: tuple[str, str, str]
    between: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]
    call_id: str = ""

    def reader(self, tools: Tools) -> CallReader:
        return HeadedReader(self, tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        before, behind, after = self.write
        calls = [
            InOrder((Exactly(before + tool.name + behind), json_arguments(tool))) for tool in tools
        ]
        return InOrder((OneOf(tuple(calls)), Exactly(after)))


class Place(Enum):
    """What is read."""

    HEADER = auto()
    ARGUMENTS = auto()
    BROKEN = auto()
    END = auto()


class HeadedReader(CallReader):
    """See the module and ``CallReader``."""

    __slots__ = ("_arguments", "_form", "_place", "_seen", "_tools")

    def __init__(self, form: HeadedJson, tools: Tools) -> None:
        super().__init__()
        self._form = form
        self._tools = tools
        self._place = Place.HEADER
        self._seen = ""
        """The header, while it is not whole."""
        self._arguments = ArgumentsText()

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        return self._arguments.glance if self._place is Place.ARGUMENTS else None

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """Raw text to parts; see ``CallReader``."""
        parts: list[Part] = []
        if self._place is Place.HEADER:
            at = self._read_header(text, at, parts)
        if self._place is Place.ARGUMENTS and self.verdict is Verdict.READING:
            at = self._read_arguments(text, at, parts)
        if self._place is Place.BROKEN:
            at = self._read_broken(text, at, parts)
        if self._place is Place.END and self.verdict is Verdict.READING:
            at = self._read_end(text, at, parts)
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call with all its arguments is closed, unless it was cut; see ``CallReader``."""
        if self._place is Place.END or (self._place is Place.ARGUMENTS and not self._begun):
            return [] if cut else [CallClosed()]
        held = self._arguments.rest()
        return [CallInput(held)] if held else []

    @property
    def _begun(self) -> bool:
        return self._arguments.begun

    def _read_header(self, text: str, at: int, parts: list[Part]) -> int:
        before = len(self._seen)
        self._seen += text[at:]
        header = self._form.header
        found = header.match(self._seen, 0)
        if found is None:
            if not header.may_come(self._seen, 0):
                self.verdict = Verdict.PROSE
            return len(text)
        opened = self._tools.opened(found["name"], _call_id(self._form.call_id, found))
        if opened is None:
            self.verdict = Verdict.PROSE
            return len(text)
        end = at + found.end() - before
        self._seen = ""
        self._place = Place.ARGUMENTS
        parts.append(Part(end, opened))
        return end

    def _read_arguments(self, text: str, at: int, parts: list[Part]) -> int:
        arguments, end = self._arguments, self._form.end
        if not arguments.begun:
            space = SPACE.match(text, at)
            at = space.end() if space else at
            if end is not None and end.match(text, at):
                self._place = Place.END
                return at
            if at == len(text) or (end is not None and end.may_come(text, at)):
                return at
        stop, shown = arguments.read(text, at)
        if shown:
            parts.append(Part(stop, CallInput(shown)))
        if arguments.complete:
            self._place = Place.END
            parts.append(Part(stop))
        elif arguments.broken:
            self._place = Place.BROKEN
        return stop

    def _read_broken(self, text: str, at: int, parts: list[Part]) -> int:
        """Text up to the closer, and to the white space before it."""
        closer = self._form.closer
        found = text.find(closer, at) if closer else -1
        if found < 0:
            found = _held_from(text, at, closer)
        else:
            self._place = Place.END
        stop = at + len(text[at:found].rstrip())
        if stop > at:
            parts.append(Part(stop, CallInput(text[at:stop])))
        return stop

    def _read_end(self, text: str, at: int, parts: list[Part]) -> int:
        end = self._form.end
        if end is not None:
            found = end.match(text, at)
            if found is None and end.may_come(text, at):
                return at
            at = found.end() if found else at
        parts.append(Part(at, CallClosed()))
        self.verdict = Verdict.OVER
        return at


def _call_id(made: str, found: re.Match[str]) -> str | None:
    gaps = found.groupdict()
    return made.format(**gaps) if made and None not in gaps.values() else None


def _held_from(text: str, at: int, closer: str) -> int:
    """Where the longest suffix of ``text[at:]`` begins that may become the closer."""
    for begin in range(max(at, len(text) - len(closer) + 1), len(text)):
        if closer.startswith(text[begin:]):
            return begin
    return len(text)
