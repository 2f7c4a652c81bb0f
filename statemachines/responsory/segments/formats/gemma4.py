"""Gemma 4: a name and an object, in which strings stand between tokens of their own.

As the model writes it::

    <|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>

The object becomes one of JSON, with ``, `` and ``: `` between its parts and the types as written.
Any other bare word than a number or a constant is a string.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput
from responsory.immutable import immutable
from responsory.segments.formats.gemma4_written import gemma_calls
from responsory.segments.formats.phrase import SPACE, Gap, Phrase
from responsory.segments.formats.python_words import spelled
from responsory.segments.formats.spec import (
    CallFormat,
    CallReader,
    Part,
    Spec,
    Verdict,
    with_calls,
)
from responsory.segments.formats.tagged import held_from
from responsory.segments.formats.tagged_value import escaped
from responsory.segments.json_value import SPACE as SPACES
from responsory.segments.written import Exactly, InOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.segments.tools import Tool, Tools
    from responsory.segments.written import Written

QUOTE = '<|"|>'
CLOSER = "<tool_call|>"
HEADER = Phrase(SPACE, "call:", SPACE, Gap("name", r"[^\s{}<>|:]"), SPACE, "{")
END = Phrase(SPACE, CLOSER)
WORD_END = re.compile(r"[,}\]]")
LONGEST_WORD = 4096
"""Characters of a bare word or key; a longer one breaks the arguments."""


@immutable
class GemmaCall(CallFormat):
    """See the module."""

    closer: str = CLOSER  # pyright: ignore[reportIncompatibleMethodOverride]

    def reader(self, tools: Tools) -> CallReader:
        return GemmaReader(tools)

    def written(self, tools: Sequence[Tool], *, most: int | None) -> Written:  # noqa: ARG002
        return InOrder((gemma_calls(tools), Exactly(CLOSER)))


class Place(Enum):
    """What is read next."""

    HEADER = auto()
    KEY = auto()
    """A key, or the end of its object."""
    VALUE = auto()
    ITEM = auto()
    """A value, or the end of its list."""
    COMMA = auto()
    """A comma, or the end of what is open."""
    STRING = auto()
    END = auto()


class GemmaReader(CallReader):
    """See the module and ``CallReader``."""

    __slots__ = ("_closers", "_first", "_out", "_place", "_seen", "_tools")

    def __init__(self, tools: Tools) -> None:
        super().__init__()
        self._tools = tools
        self._place = Place.HEADER
        self._seen = ""
        """The header, while it is not whole."""
        self._closers = ["}"]
        self._first = True
        """Nothing stands in the innermost bracket yet."""
        self._out: list[str] = []

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """See ``CallReader``."""
        return _look if self._place is Place.STRING else None

    def read(self, text: str, at: int) -> tuple[int, Sequence[Part]]:
        """Raw text to parts; see ``CallReader``."""
        parts: list[Part] = []
        if self._place is Place.HEADER:
            at = self._read_header(text, at, parts)
        while self.verdict is Verdict.READING and self._place not in (Place.HEADER, Place.END):
            before, place = at, self._place
            at = self._in_string(text, at) if place is Place.STRING else self._mark(text, at)
            if at == before and place is self._place:
                break
        shown = "".join(self._out)
        self._out.clear()
        if shown:
            parts.append(Part(at, CallInput(shown)))
        if self._place is Place.END and self.verdict is Verdict.READING:
            found = END.match(text, at)
            if found is None and END.may_come(text, at):
                return at, parts
            at = found.end() if found else at
            parts.append(Part(at, CallClosed()))
            self.verdict = Verdict.OVER
        return at, parts

    def finish(self, *, cut: bool) -> Sequence[CallInput | CallClosed]:
        """A call whose object is whole is closed, unless it was cut; see ``CallReader``."""
        return [] if cut or self._place is not Place.END else [CallClosed()]

    def _read_header(self, text: str, at: int, parts: list[Part]) -> int:
        before = len(self._seen)
        self._seen += text[at:]
        found = HEADER.match(self._seen, 0)
        opened = self._tools.opened(found["name"]) if found else None
        if found is None or opened is None:
            if found is not None or not HEADER.may_come(self._seen, 0):
                self.verdict = Verdict.PROSE
            return len(text)
        end = at + found.end() - before
        self._seen = ""
        self._place = Place.KEY
        self._out.append("{")
        parts.append(Part(end, opened))
        return end

    def _mark(self, text: str, at: int) -> int:
        """What stands outside strings; left where more of it may come."""
        space = SPACES.match(text, at)
        start = space.end() if space else at
        if start == len(text):
            return start
        char = text[start]
        if self._place is not Place.VALUE and char == self._closers[-1]:
            self._out.append(self._closers.pop())
            self._first = False
            self._place = Place.COMMA if self._closers else Place.END
            return start + 1
        if self._place is Place.COMMA:
            if char != ",":
                self.verdict = Verdict.BROKEN
                return at
            self._place = Place.KEY if self._closers[-1] == "}" else Place.ITEM
            return start + 1
        if self._place is Place.KEY:
            return self._key(text, start)
        return self._value(text, start, char)

    def _key(self, text: str, at: int) -> int:
        if QUOTE.startswith(text[at : at + len(QUOTE)]):
            quoted = text.find(QUOTE, at + len(QUOTE), at + LONGEST_WORD)
            colon = -1 if quoted < 0 else text.find(":", quoted, at + LONGEST_WORD)
        else:
            colon = text.find(":", at, at + LONGEST_WORD)
        if colon < 0:
            self._check(len(text) - at)
            return at
        name = text[at:colon].strip().removeprefix(QUOTE).removesuffix(QUOTE)
        self._out.append(f"{self._comma()}{json.dumps(name, ensure_ascii=False)}: ")
        self._place = Place.VALUE
        return colon + 1

    def _value(self, text: str, at: int, char: str) -> int:
        if text.startswith(QUOTE, at):
            self._out.append(f'{self._comma()}"')
            self._place = Place.STRING
            return at + len(QUOTE)
        if QUOTE.startswith(text[at:]):
            return at
        if char in "{[":
            self._out.append(f"{self._comma()}{char}")
            self._closers.append("}" if char == "{" else "]")
            self._first = True
            self._place = Place.KEY if char == "{" else Place.ITEM
            return at + 1
        end = WORD_END.search(text, at, at + LONGEST_WORD)
        if end is None:
            self._check(len(text) - at)
            return at
        self._out.append(self._comma() + spelled(text[at : end.start()].strip()))
        self._place = Place.COMMA
        return end.start()

    def _comma(self) -> str:
        """What stands before a key, or a value of a list."""
        if self._place is Place.VALUE:
            return ""
        first, self._first = self._first, False
        return "" if first else ", "

    def _check(self, length: int) -> None:
        if length >= LONGEST_WORD:
            self.verdict = Verdict.BROKEN

    def _in_string(self, text: str, at: int) -> int:
        close = text.find(QUOTE, at)
        stop = held_from(text, at, QUOTE) if close < 0 else close
        self._out.append(escaped(text[at:stop]))
        if close < 0:
            return stop
        self._out.append('"')
        self._place = Place.COMMA
        return close + len(QUOTE)


def _look(text: str) -> str | None:
    """Text of a string that is the same in JSON, and can be no part of its end."""
    plain = text.isprintable() and "<" not in text and '"' not in text and "\\" not in text
    return text if plain else None


def gemma4_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_calls(spec, "<|tool_call>", GemmaCall())
