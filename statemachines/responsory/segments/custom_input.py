"""The input of a custom tool, taken out of the arguments that a model writes for it.

To a model such a tool is a function of one string, ``{"input": "…"}``. The string's text is passed
on while it comes; what stands around it is dropped. Arguments of another shape are the input as
they stand, and what is known to be of the shape never turns out to be of another.
"""

from __future__ import annotations

import json
import re

from responsory.segments.formats.phrase import SPACE, Phrase

HEAD = Phrase(SPACE, "{", SPACE, '"input"', SPACE, ":", SPACE, '"')
NOTHING = re.compile(r"\s*\{\s*\}?\s*")
CODE = re.compile(r"\\u[0-9a-fA-F]{4}")
PLAIN = re.compile(r'[^"\\]*')
ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
LOST = "\ufffd"
"""Stands for half a surrogate pair, which no text can hold."""


class CustomInput:
    """``feed`` it the arguments' JSON text; ``finish`` gives what was held."""

    __slots__ = ("_escape", "_head", "_high", "_over", "_raw")

    def __init__(self) -> None:
        self._head: str | None = ""
        """The text before the string, while it may still be that; None behind it."""
        self._raw = False
        self._over = False
        self._escape = ""
        """A backslash and what came behind it."""
        self._high = 0
        """The first half of a surrogate pair."""

    def feed(self, text: str) -> str:
        """The input that ``text`` makes certain."""
        if self._raw:
            return text
        if self._head is not None:
            self._head += text
            found = HEAD.match(self._head, 0)
            if found is None:
                return "" if HEAD.may_come(self._head, 0) else self._give_up()
            text, self._head = self._head[found.end() :], None
        return "" if self._over else self._decoded(text)

    def leave(self) -> str:
        """What was held when the arguments turned out to be no JSON."""
        return self._head if self._head is not None else self.finish()

    def finish(self) -> str:
        """What was held when the arguments ended."""
        if self._raw or self._over:
            return ""
        if self._head is not None:
            bare, self._head = self._head, None
            self._raw = True
            return "" if not bare.strip() or NOTHING.fullmatch(bare) else bare
        return self._lost()

    def _give_up(self) -> str:
        """Other arguments than those are shown as they stand; none at all are no input."""
        text, self._head, self._raw = str(self._head), None, True
        if NOTHING.fullmatch(text):
            self._raw, self._over = False, True
            return ""
        return text

    def _decoded(self, text: str) -> str:
        shown: list[str] = []
        at = 0
        while at < len(text) and not self._over:
            if self._escape:
                self._escape += text[at]
                at += 1
                shown.append(self._escaped())
                continue
            found = PLAIN.match(text, at)
            end = found.end() if found else at
            if end > at:
                shown.append(self._lost() + text[at:end])
            if end < len(text) and text[end] == '"':
                shown.append(self._lost())
                self._over = True
            elif end < len(text):
                self._escape = "\\"
            at = end + 1
        return "".join(shown)

    def _escaped(self) -> str:
        """The character of an escape that is whole; else nothing yet."""
        escape = self._escape
        kind = escape[1]
        if kind != "u":
            self._escape = ""
            return self._lost() + ESCAPES.get(kind, escape)
        if len(escape) < 6:
            return ""
        self._escape = ""
        if not CODE.fullmatch(escape):
            return self._lost() + escape
        code = ord(json.loads(f'"{escape}"'))
        if 0xDC00 <= code < 0xE000 and self._high:
            pair = f'"\\u{self._high:04x}\\u{code:04x}"'
            self._high = 0
            return str(json.loads(pair))
        before = self._lost()
        if 0xD800 <= code < 0xDC00:
            self._high = code
            return before
        return before + (LOST if 0xDC00 <= code < 0xE000 else chr(code))

    def _lost(self) -> str:
        """What stands for a first half that no second one follows."""
        high, self._high = self._high, 0
        return LOST if high else ""
