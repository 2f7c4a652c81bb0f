"""A literal of Python as JSON, made while it comes.

Lists and tuples become arrays and dicts objects, with ``, `` and ``: `` between their parts. One
value in round brackets is itself, so what comes behind such a bracket is held until a comma or its
end. A bare word that is no literal is a string. Nothing recurses, and the closing quote of a string
waits for the next token, since another string may follow that goes on with it.
Source: the Python Language Reference, 2.4 (literals).
"""

from __future__ import annotations

import json
from enum import Enum, auto

from responsory.segments.formats import python_words as signs
from responsory.segments.formats.python_words import coded, spelled


class Place(Enum):
    """What is read next."""

    VALUE = auto()
    ITEM = auto()
    """A value, or the end of its list."""
    KEY = auto()
    """A key, or the end of its dict."""
    COLON = auto()
    COMMA = auto()
    """A comma, or the end of what is open."""
    QUOTE = auto()
    """One quote came: of a string, or the first of three."""
    STRING = auto()
    AFTER_STRING = auto()
    WORD = auto()
    COMPLETE = auto()
    BROKEN = auto()


class PythonLiteral:
    """One literal. ``read`` it piece by piece; then it is ``complete``, ``broken``, or neither.

    It ends at the first character behind it that cannot belong to it, which is left.
    """

    __slots__ = ("_between", "_closers", "_escape", "_first", "_key", "_out", "_place", "_quote",
                 "_quotes", "_raw", "_undecided", "_word")  # fmt: skip

    def __init__(self) -> None:
        self._place = Place.VALUE
        self._closers: list[str] = []
        self._first = True
        """Nothing stands in the innermost bracket yet."""
        self._key = False
        """What is read is the key of a dict."""
        self._quote = ""
        """What ends the string: one quote, or three."""
        self._quotes = 0
        """Quotes of the end that came."""
        self._escape: str | None = None
        """An escape behind its backslash, while it is not whole."""
        self._raw = False
        self._word = ""
        self._between = ""
        """White space and a comma behind what was shown last."""
        self._out: list[str] = []
        self._undecided: list[tuple[int, int]] = []
        """Round brackets that may be no tuple, since no comma came: how many brackets are open, and
        where the output has this one. From the first on the output is held."""

    @property
    def complete(self) -> bool:
        return self._place is Place.COMPLETE

    @property
    def broken(self) -> bool:
        return self._place is Place.BROKEN

    def glance(self, text: str) -> str | None:
        """Text inside a string that is the same in JSON; else None, and nothing was read."""
        quiet = self._place is Place.STRING and self._escape is None and not self._quotes
        quiet = quiet and not self._undecided
        plain = signs.PLAIN.fullmatch(text) if quiet else None
        return text if plain else None

    def read(self, text: str, at: int) -> tuple[int, str]:
        """How far it goes on in ``text`` from ``at`` on, and the JSON of that."""
        end = len(text)
        while at < end and self._place not in (Place.COMPLETE, Place.BROKEN):
            place = self._place
            if place is Place.STRING:
                at = self._in_string(text, at)
            elif place is Place.QUOTE:
                at = self._behind_quote(text, at)
            elif place is Place.WORD:
                at = self._in_word(text, at)
            else:
                space = signs.SPACE.match(text, at)
                if space:
                    self._between += space[0]
                    at = space.end()
                if at < end:
                    at = self._between_values(text, at)
        return at, self._certain()

    def _between_values(self, text: str, at: int) -> int:
        """A mark. What was passed over before it is shown where it is none."""
        ended = self._place is Place.AFTER_STRING
        end = self._mark(text, at)
        if self.broken:
            self._out.append(self._between)
        elif end > at and text[at] == ",":
            self._between += ","
            return end
        if not (ended and end == at):
            self._between = ""
        return end

    def _certain(self) -> str:
        """The output up to the first bracket that may be none."""
        out = self._out
        end = self._undecided[0][1] if self._undecided and not self.broken else len(out)
        shown = "".join(out[:end])
        if end:
            del out[:end]
            self._undecided = [(depth, place - end) for depth, place in self._undecided]
        return shown

    def finish(self) -> str:
        """The JSON that was held when the text ended behind a whole value; empty inside one."""
        if self._closers or self._place not in (Place.AFTER_STRING, Place.WORD):
            return ""
        self._ended()
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _ended(self) -> None:
        """The string or the word is over."""
        if self._place is Place.AFTER_STRING:
            self._out.append('"')
        else:
            self._out.append(spelled(self._word, key=self._key))
            self._word = ""
        if self._key:
            self._place = Place.COLON
        else:
            self._place = Place.COMMA if self._closers else Place.COMPLETE

    def _mark(self, text: str, at: int) -> int:
        """A character outside strings and words."""
        char = text[at]
        if self._place is Place.AFTER_STRING:
            if char in "'\"":
                self._begin_string(char)
                return at + 1
            self._ended()
            return at
        if self._place is Place.COLON:
            if char != ":":
                self._place = Place.BROKEN
                return at
            self._out.append(": ")
            self._place, self._key = Place.VALUE, False
            return at + 1
        if self._place is not Place.VALUE and self._closers and char == self._closers[-1]:
            self._close()
            return at + 1
        if self._place is Place.COMMA:
            if char != ",":
                self._place = Place.BROKEN
                return at
            self._place = Place.KEY if self._closers[-1] == "}" else Place.ITEM
            if self._undecided and self._undecided[-1][0] == len(self._closers):
                self._out[self._undecided.pop()[1]] = "["
            return at + 1
        return self._begin(at, char)

    def _begin(self, at: int, char: str) -> int:
        """A key or a value begins."""
        if not (char in "'\"" or char in signs.BRACKETS or signs.WORD.fullmatch(char)):
            self._place = Place.BROKEN
            return at
        if self._place in (Place.ITEM, Place.KEY) and not self._first:
            self._out.append(", ")
        self._key = self._place is Place.KEY
        self._first = False
        if char in "'\"":
            self._out.append('"')
            self._begin_string(char)
        elif char in signs.BRACKETS and not self._key:
            self._closers.append(signs.BRACKETS[char])
            if char == "(":
                self._undecided.append((len(self._closers), len(self._out)))
            self._out.append("{" if char == "{" else "[")
            self._place = Place.KEY if char == "{" else Place.ITEM
            self._first = True
        elif char in signs.BRACKETS:
            self._place = Place.BROKEN
            return at
        else:
            self._place = Place.WORD
            return at
        return at + 1

    def _close(self) -> None:
        closer = signs.IN_JSON[self._closers.pop()]
        if self._undecided and self._undecided[-1][0] > len(self._closers):
            _, place = self._undecided.pop()
            if not self._first:  # one value in brackets is itself
                self._out[place] = closer = ""
        self._out.append(closer)
        self._first = False
        self._place = Place.COMMA if self._closers else Place.COMPLETE

    def _begin_string(self, quote: str, *, raw: bool = False) -> None:
        self._quote, self._quotes, self._escape, self._raw = quote, 0, None, raw
        self._place = Place.QUOTE

    def _behind_quote(self, text: str, at: int) -> int:
        if text[at] != self._quote:
            # One quote and text, or two and the string is empty.
            self._place = Place.AFTER_STRING if self._quotes else Place.STRING
            self._quotes = 0
            return at
        self._quotes += 1
        if self._quotes == 2:
            self._quote, self._quotes, self._place = self._quote * 3, 0, Place.STRING
        return at + 1

    def _in_word(self, text: str, at: int) -> int:
        found = signs.WORD.match(text, at)
        end = min(found.end() if found else at, at + signs.LONGEST_WORD - len(self._word))
        self._word += text[at:end]
        if end < len(text) and found is not None and end < found.end():
            self._out.append(self._word)
            self._place = Place.BROKEN
        elif end < len(text):
            if text[end] in "'\"" and self._word.lower() in ("r", "b", "u", "f", "br", "rb"):
                self._out.append('"')
                raw = "r" in self._word.lower()
                self._word = ""
                self._begin_string(text[end], raw=raw)
                return end + 1
            self._ended()
        return end

    def _in_string(self, text: str, at: int) -> int:
        if self._escape is not None:
            return self._in_escape(text, at)
        if self._quotes:  # of three, some came
            return self._at_quotes(text, at)
        found = signs.PLAIN.match(text, at)
        end = found.end() if found else at
        self._out.append(text[at:end])
        if end == len(text):
            return end
        char = text[end]
        if char == "\\":
            self._escape = ""
        elif char == self._quote[0]:
            return self._at_quotes(text, end)
        else:
            self._out.append(json.dumps(char)[1:-1])
        return end + 1

    def _at_quotes(self, text: str, at: int) -> int:
        """A quote as the string's own, or what is no quote behind one or two of three."""
        if text[at] != self._quote[0]:
            self._out.append('\\"' * self._quotes if self._quote[0] == '"' else "'" * self._quotes)
            self._quotes = 0
            return at
        self._quotes += 1
        if self._quotes == len(self._quote):
            self._quotes, self._place = 0, Place.AFTER_STRING
        return at + 1

    def _in_escape(self, text: str, at: int) -> int:
        """One more character of an escape, or the first behind it."""
        char = text[at]
        so_far = str(self._escape)
        if self._raw:
            # It stays, and what follows it ends nothing.
            self._escape = None
            self._out.append(json.dumps("\\" + char, ensure_ascii=False)[1:-1])
            return at + 1
        if not so_far and char in signs.SIMPLE:
            self._escape = None
            self._out.append(signs.SIMPLE[char])
            return at + 1
        if signs.ESCAPE.fullmatch(so_far + char):
            self._escape = so_far + char
            if len(self._escape) == 1 + signs.CODES.get(self._escape[0], 99):
                self._out.append(coded(self._escape))
                self._escape = None
            return at + 1
        self._escape = None
        self._out.append(coded(so_far) if so_far else "\\\\")
        return at
