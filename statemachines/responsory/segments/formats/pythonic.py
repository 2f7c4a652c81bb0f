"""Llama 4 and LFM2: a list of calls as Python writes them.

As the models write them::

    [get_weather(city='Oslo', days=3), ping()]
    <|python_start|>[get_weather(city='Oslo', days=3)]<|python_end|>
    <|tool_call_start|>[get_weather(city='Oslo', days=3)]<|tool_call_end|>
    <|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|tool_call_end|>

The bare list is a call only where the answer begins with ``[name(``. An argument without its name
is that of the schema at this place; where none is known there, the arguments are broken. LFM2
writes the last where its system prompt asks for JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput
from responsory.immutable import immutable
from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.json_list import with_bare_calls
from responsory.segments.formats.phrase import SPACE, Gap, Phrase
from responsory.segments.formats.python_literal import PythonLiteral
from responsory.segments.formats.python_written import python_calls
from responsory.segments.formats.section import Section, add_section, with_section
from responsory.segments.formats.spec import CallFormat, CallReader, Part, Spec, Verdict
from responsory.segments.json_value import SPACE as SPACES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written

NAME = Gap("name", r"[\w.-]", first=r"[^\W\d]")
HEADER = Phrase(SPACE, NAME, "(")
KEYWORD = Phrase(SPACE, NAME, SPACE, "=")


@immutable
class PythonCall(CallFormat):
    """A call behind the bracket of the list, or behind a comma in it. ``closer``: of arguments that
    are no literals."""

    closer: str = ""  # pyright: ignore[reportIncompatibleMethodOverride]

    def reader(self, tools: Tools) -> CallReader:
        return PythonOrJson(tools) if self.closer else PythonReader(tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        return python_calls(tools)


class Place(Enum):
    """What is read."""

    HEADER = auto()
    ARGUMENT = auto()
    """The name of an argument, the argument or the end."""
    VALUE = auto()
    COMMA = auto()


class PythonReader(CallReader):
    """See the module and ``CallReader``."""

    __slots__ = ("_count", "_literal", "_names", "_place", "_seen", "_tools")

    def __init__(self, tools: Tools) -> None:
        super().__init__()
        self._tools = tools
        self._place = Place.HEADER
        self._seen = ""
        """The header, while it is not whole."""
        self._literal = PythonLiteral()
        self._count = 0
        """Arguments so far."""
        self._names: list[str] = []
        """Of the arguments, as the schema has them."""

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        return self._literal.glance if self._place is Place.VALUE else None

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """Raw text to parts; see ``CallReader``."""
        parts: list[Part] = []
        if self._place is Place.HEADER:
            at = self._read_header(text, at, parts)
        while at < len(text) and self.verdict is Verdict.READING:
            before, place = at, self._place
            if place is Place.HEADER:
                break
            if place is Place.VALUE:
                at = self._read_value(text, at, parts)
            else:
                at = self._read_between(text, at, parts)
            if at == before and place is self._place:
                break
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call without its bracket is not whole; see ``CallReader``."""
        held = self._literal.finish() if self._place is Place.VALUE and not cut else ""
        return [CallInput(held)] if held else []

    def _read_header(self, text: str, at: int, parts: list[Part]) -> int:
        before = len(self._seen)
        self._seen += text[at:]
        found = HEADER.match(self._seen, 0)
        opened = self._tools.opened(found["name"]) if found else None
        if found is None or opened is None:
            if found is not None or not HEADER.may_come(self._seen, 0):
                self.verdict = Verdict.PROSE
            return len(text)
        parameters = self._tools.parameters(opened.name)
        if opened.kind == "custom":
            self._names = ["input"]
        elif parameters is not None and isinstance(parameters.get("properties"), Mapping):
            self._names = list(parameters["properties"])  # type: ignore[arg-type]
        end = at + found.end() - before
        self._seen = ""
        self._place = Place.ARGUMENT
        parts.append(Part(end, opened))
        return end

    def _read_between(self, text: str, at: int, parts: list[Part]) -> int:
        """A comma, the end, or the beginning of an argument."""
        space = SPACES.match(text, at)
        at = space.end() if space else at
        if at == len(text):
            return at
        if text[at] == ")":
            if self._count:
                parts.append(Part(at + 1, CallInput("}")))
            parts.append(Part(at + 1, CallClosed()))
            self.verdict = Verdict.OVER
            return at + 1
        if self._place is Place.COMMA:
            if text[at] != ",":
                self.verdict = Verdict.BROKEN
                return at
            self._place = Place.ARGUMENT
            return at + 1
        found = KEYWORD.match(text, at)
        if found is None and KEYWORD.may_come(text, at):
            return at
        if found is not None:
            self._begin(found["name"], found.end(), parts)
            return found.end()
        if self._count >= len(self._names):
            self.verdict = Verdict.BROKEN
            return at
        self._begin(self._names[self._count], at, parts)
        return at

    def _begin(self, name: str, end: int, parts: list[Part]) -> None:
        separator = ", " if self._count else "{"
        head = f"{separator}{json.dumps(name, ensure_ascii=False)}: "
        parts.append(Part(end, CallInput(head)))
        self._count += 1
        self._literal = PythonLiteral()
        self._place = Place.VALUE

    def _read_value(self, text: str, at: int, parts: list[Part]) -> int:
        literal = self._literal
        end, shown = literal.read(text, at)
        if shown:
            parts.append(Part(end, CallInput(shown)))
        elif end > at:
            parts.append(Part(end))
        if literal.complete:
            self._place = Place.COMMA
        elif literal.broken:
            self.verdict = Verdict.BROKEN
        return end


class PythonOrJson(CallReader):
    """Reads a call of Python's or an envelope, as its first character tells."""

    __slots__ = ("_begun", "_inner", "_tools")

    def __init__(self, tools: Tools) -> None:
        super().__init__()
        self._tools = tools
        self._inner: CallReader = PythonReader(tools)
        self._begun = False

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        return self._inner.glance

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """See ``CallReader``."""
        if not self._begun:
            begun = text[at:].lstrip()
            self._begun = bool(begun)
            if begun.startswith("{"):
                self._inner = ENVELOPE.reader(self._tools)
        at, parts = self._inner.read(text, at)
        self.verdict = self._inner.verdict
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """See ``CallReader``."""
        return self._inner.finish(cut=cut)


ENVELOPE = JsonEnvelope("", lead="", between="")
CALL = PythonCall()
LIST = Section(lead=Phrase(SPACE), form=CALL, write=("", ", ", "]"), again={",": CALL}, ends=("]",))


def _tagged(end: str) -> Section:
    call = PythonCall(end)
    return Section(
        lead=Phrase(SPACE, "["),
        form=call,
        write=("[", ", ", f"]{end}"),
        again={",": call},
        ends=("]", end),
    )


LFM2 = _tagged("<|tool_call_end|>")
LLAMA4 = _tagged("<|python_end|>")


def pythonic_calls(spec: Spec) -> Spec:
    """``spec`` with a bare list of calls, and with those between the tags of Llama 4."""
    spec = with_section(spec, "<|python_start|>", LLAMA4, name="tagged", broken="in tags")
    return with_bare_calls(add_section(spec, LIST), {"[": LIST}, after="section")


def lfm2_calls(spec: Spec) -> Spec:
    """``spec`` with lists of calls between two tags."""
    return with_section(spec, "<|tool_call_start|>", LFM2)
