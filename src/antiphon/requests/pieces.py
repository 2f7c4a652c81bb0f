"""Long JSON texts, decoded in pieces: between two of them other threads have their turn.

The decoder in C holds the lock of the interpreter until it is done, half a second for a million
names. Here it is given runs of the elements of long arrays and objects, cut where the next element
seems to begin. A run that was cut in the wrong place is no JSON: what it holds is then decoded
element by element, with the same result. Since no character is tried in vain twice, the worst
text takes no more than a constant times as long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json import JSONDecodeError
from typing import Any

from antiphon.errors import InvalidRequest

LONG = 256 * 1024
"""Characters of a text for which pieces are worth their while."""
MOST = 64 * 1024
LEAST = 1024
"""Characters of a run: the most are decoded in about a millisecond."""
ONE = 4096
"""Characters in which a single value may end."""

_CLOSING = {"[": "]", "{": "}"}
_space = re.compile(r"[ \t\n\r]*").match


def decode(text: str, decoder: json.JSONDecoder, deepest: int) -> Any:
    """What ``decoder.decode(text)`` gives.

    Raises what that raises, and ``RecursionError`` for more than ``deepest`` levels, though not
    for all of them.
    """
    pieces = _Pieces(text, decoder, deepest)
    value, end = pieces.value(pieces.skip(0), 0)
    if (end := pieces.skip(end)) != len(text):
        raise JSONDecodeError("Extra data", text, end)
    return value


class _Pieces:
    """One text on its way. What was tried in vain is behind ``retry``, or behind ``unmarked``."""

    def __init__(self, text: str, decoder: json.JSONDecoder, deepest: int) -> None:
        self.text = text
        self.scan = decoder.raw_decode
        self.deepest = deepest
        self.size = MOST
        self.retry = 0
        """Where a piece may be decoded again after one that was no JSON."""
        self.unmarked = 0
        """Where there may be the end of a run again after none was found."""

    def skip(self, at: int) -> int:
        """The place of the next character that is no space."""
        found = _space(self.text, at)
        return at if found is None else found.end()

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins here, and the place behind it."""
        opening = self.text[at : at + 1]
        if opening not in _CLOSING:
            return self.scan(self.text, at)
        if depth == self.deepest:
            raise RecursionError
        if (whole := self._try("", at, ONE, "")) is not None:
            return whole[0], at + whole[1]
        return (self._array if opening == "[" else self._object)(at + 1, depth + 1)

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self.skip(at)
        if self.text[at : at + 1] == "]":
            return values, at + 1
        while True:
            at, closed = self._runs("[", at, values.extend)
            if closed:
                return values, at
            value, at = self.value(at, depth)
            values.append(value)
            at, closed = self._behind(at, "]")
            if closed:
                return values, at

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        at = self.skip(at)
        if self.text[at : at + 1] == "}":
            return values, at + 1
        while True:
            at, closed = self._runs("{", at, values.update)
            if closed:
                return values, at
            if self.text[at : at + 1] != '"':
                raise JSONDecodeError(
                    "Expecting property name enclosed in double quotes", self.text, at
                )
            name, at = self.scan(self.text, at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self.text, at)
            values[name], at = self.value(self.skip(at + 1), depth)
            at, closed = self._behind(at, "}")
            if closed:
                return values, at

    def _behind(self, at: int, closing: str) -> tuple[int, bool]:
        """The place of the next element, or behind the end of them all."""
        at = self.skip(at)
        found = self.text[at : at + 1]
        if found != closing and found != ",":
            raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
        return (at + 1, True) if found == closing else (self.skip(at + 1), False)

    def _runs(self, opening: str, at: int, add: Callable[[Any], None]) -> tuple[int, bool]:
        """Add as many elements as come in runs. The place behind, and whether all ended there."""
        closing = _CLOSING[opening]
        # What follows a comma must be an element, and no end.
        while self.text[at : at + 1] not in ("", closing):
            if not (length := self._length(opening, at)):
                break
            rest = at + length == len(self.text)
            run = self._try(opening, at, length, "" if rest else closing)
            if run is None:
                self.size = max(self.size // 2, LEAST)
                break
            self.size = min(self.size * 2, MOST)
            add(run[0])
            if run[1] <= length + 1:  # it was closed by the text itself
                return at + run[1] - 1, True
            at = self.skip(at + length + 1)
        return at, False

    def _length(self, opening: str, at: int) -> int:
        """The length of a run: to a comma behind which another element seems to begin, or 0."""
        if at < self.retry or at < self.unmarked:
            return 0
        last = at + self.size
        if last >= len(self.text):
            return len(self.text) - at
        first = self.text[at]
        if opening == "{":
            marks = [',"', ', "']
        elif first in '[{"':
            end = _CLOSING.get(first, first)
            marks = [f"{end},{self.text[at : at + 3]}", f"{end},"]
        else:
            marks = [","]
        for mark in marks:
            found = self.text.rfind(mark, at, last)
            if found >= at:
                return found + mark.index(",") - at
        self.unmarked = last
        return 0

    def _try(self, opening: str, at: int, length: int, closing: str) -> tuple[Any, int] | None:
        """What this piece is as JSON, and its end; None where it is none, or not to be tried."""
        if at < self.retry:
            return None
        try:
            return self.scan(f"{opening}{self.text[at : at + length]}{closing}", 0)
        except (JSONDecodeError, InvalidRequest):  # a number without its exponent can be too large
            self.retry = at + length
            return None
