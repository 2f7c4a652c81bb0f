"""A literal of Python as JSON, made while it comes.

Lists and tuples become arrays and dicts objects, with ``, `` and ``: `` between their parts. A bare
word that is no literal is a string. Nothing recurses, and the closing quote of a string waits for
the next token, since another string may follow that goes on with it.
Source: the Python Language Reference, 2.4 (literals).
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto

WORDS = {
    "True": "true", "False": "false", "None": "null",
    "true": "true", "false": "false", "null": "null",
}  # fmt: skip
NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?")
BASED = re.compile(r"[+-]?0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)")
LONGEST_BASED = 1024
"""Characters of a number of another base; more of them is no number of a tool's."""
WORD = re.compile(r"[\w.+\-]*")
SPACE = re.compile(r"\s*")
PLAIN = re.compile(r"[^'\"\\\x00-\x1f]*")
SIMPLE = {
    "n": "\\n", "t": "\\t", "r": "\\r", "b": "\\b", "f": "\\f", "a": "\\u0007", "v": "\\u000b",
    "\\": "\\\\", "'": "'", '"': '\\"', "\n": "",
}  # fmt: skip
CODES = {"x": 2, "u": 4, "U": 8}
ESCAPE = re.compile(r"[0-7]{1,3}|x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}")
BRACKETS = {"[": "]", "(": ")", "{": "}"}
IN_JSON = {"]": "]", ")": "]", "}": "}"}


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

    __slots__ = ("_closers", "_escape", "_first", "_key", "_out", "_place", "_quote", "_quotes",
                 "_raw", "_word")  # fmt: skip

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
        self._out: list[str] = []

    @property
    def complete(self) -> bool:
        return self._place is Place.COMPLETE

    @property
    def broken(self) -> bool:
        return self._place is Place.BROKEN

    def glance(self, text: str) -> str | None:
        """Text inside a string that is the same in JSON; else None, and nothing was read."""
        quiet = self._place is Place.STRING and self._escape is None and not self._quotes
        plain = PLAIN.fullmatch(text) if quiet else None
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
                space = SPACE.match(text, at)
                at = space.end() if space else at
                if at < end:
                    at = self._mark(text, at)
        shown = "".join(self._out)
        self._out.clear()
        return at, shown

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
            self._out.append(": ")
            self._place = Place.VALUE if char == ":" else Place.BROKEN
            self._key = False
            return at + 1
        if self._place is not Place.VALUE and self._closers and char == self._closers[-1]:
            self._close()
            return at + 1
        if self._place is Place.COMMA:
            if char != ",":
                self._place = Place.BROKEN
                return at
            self._place = Place.KEY if self._closers[-1] == "}" else Place.ITEM
            return at + 1
        return self._begin(at, char)

    def _begin(self, at: int, char: str) -> int:
        """A key or a value begins."""
        if not (char in "'\"" or char in BRACKETS or WORD.fullmatch(char)):
            self._place = Place.BROKEN
            return at
        if self._place in (Place.ITEM, Place.KEY) and not self._first:
            self._out.append(", ")
        self._key = self._place is Place.KEY
        self._first = False
        if char in "'\"":
            self._out.append('"')
            self._begin_string(char)
        elif char in BRACKETS and not self._key:
            self._closers.append(BRACKETS[char])
            self._out.append("{" if char == "{" else "[")
            self._place = Place.KEY if char == "{" else Place.ITEM
            self._first = True
        elif char in BRACKETS:
            self._place = Place.BROKEN
            return at
        else:
            self._place = Place.WORD
            return at
        return at + 1

    def _close(self) -> None:
        self._out.append(IN_JSON[self._closers.pop()])
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
        found = WORD.match(text, at)
        end = found.end() if found else at
        self._word += text[at:end]
        if len(self._word) > 4096:
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
        found = PLAIN.match(text, at)
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
        if not so_far and char in SIMPLE:
            self._escape = None
            self._out.append(SIMPLE[char])
            return at + 1
        if ESCAPE.fullmatch(so_far + char):
            self._escape = so_far + char
            if len(self._escape) == 1 + CODES.get(self._escape[0], 99):
                self._out.append(_coded(self._escape))
                self._escape = None
            return at + 1
        self._escape = None
        self._out.append(_coded(so_far) if so_far else "\\\\")
        return at


def _coded(escape: str) -> str:
    """The character of an escape as JSON; an unfinished one as it stands."""
    kind = escape[0]
    if kind in CODES and len(escape) != 1 + CODES[kind]:
        return json.dumps("\\" + escape)[1:-1]
    code = int(escape[1:], 16) if kind in CODES else int(escape, 8)
    if code > 0x10FFFF:
        return json.dumps("\\" + escape)[1:-1]
    if 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return json.dumps(chr(code), ensure_ascii=False)[1:-1]


def spelled(word: str, *, key: bool = False) -> str:
    """A bare word as JSON: a number, a constant, or a string."""
    value = WORDS.get(word)
    if value is None and NUMBER.fullmatch(word):
        value = _number(word)
    elif value is None and len(word) <= LONGEST_BASED and BASED.fullmatch(word):
        value = str(int(word, 0))
    if value is None or key:
        return json.dumps(word, ensure_ascii=False)
    return value


def _number(word: str) -> str:
    digits = word.replace("_", "").lstrip("+")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    mantissa, exponent = re.fullmatch(r"([^eE]*)(.*)", digits).groups()  # type: ignore[union-attr]
    whole, point, part = mantissa.partition(".")
    whole = whole.lstrip("0") or "0"
    return f"{sign}{whole}{f'.{part or 0}' if point else ''}{exponent}"
