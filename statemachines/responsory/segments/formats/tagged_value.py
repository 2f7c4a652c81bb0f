"""A value that is written as it is, as JSON of the type that its schema allows.

A string is passed on while it comes, and so is an array or an object that begins as one of JSON.
Any other value is looked at when it is whole: what is no JSON text of an allowed type is a string.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

WORDS = {"True": "true", "False": "false", "None": "null"}
"""What models that learnt Python write for these."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
STRING = frozenset({"string"})
OPEN = re.compile(r"\s*(?:\[|\{)\s*")
DEEPEST = 200
"""Brackets in a literal of Python; a deeper one is a string."""


def escaped(text: str) -> str:
    """Text as it stands inside a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class TaggedValue:
    """``add`` text as it comes and then ``end`` it; both give the JSON that is certain."""

    __slots__ = ("_held", "_streams", "_types", "is_string")

    def __init__(self, types: frozenset[str]) -> None:
        self._types = types
        self.is_string = types == STRING
        """Whatever comes is one; it has begun."""
        self._streams: bool | None = None if not self.is_string else True
        self._held: list[str] = []

    def begin(self) -> str:
        """What stands before the first text."""
        return '"' if self.is_string else ""

    def add(self, text: str) -> str:
        """Text of the value."""
        if self.is_string:
            return escaped(text)
        if self._streams:
            return text
        self._held.append(text)
        if self._streams is None:
            held = "".join(self._held)
            self._streams = _is_json(held, self._types)
            self._held = [held]
            if self._streams:
                self._held.clear()
                return held.lstrip()
        return ""

    def end(self) -> str:
        """The value is whole."""
        if self.is_string:
            return '"'
        return "" if self._streams else as_json("".join(self._held), self._types)


def _is_json(text: str, types: frozenset[str]) -> bool | None:
    """Whether an array or an object begins here as JSON writes it; None: that is not known yet."""
    if "string" in types and len(types) < 7:
        return False  # only the whole tells
    start = text.lstrip()[:1]
    if not start:
        return None
    if start not in "[{" or ("array" if start == "[" else "object") not in types:
        return False
    opened = OPEN.match(text)
    following = text[opened.end() :][:1] if opened else ""
    if not following:
        return None
    return following in ('"]{[-0123456789tfn' if start == "[" else '"}')


def as_json(text: str, types: frozenset[str]) -> str:
    """The value as JSON of one of the types, or as a string."""
    bare = text.strip()
    word = WORDS.get(bare, bare)
    if word in ("true", "false") and "boolean" in types:
        return word
    if word == "null" and "null" in types:
        return word
    if types & {"number", "integer"} and NUMBER.fullmatch(bare):
        return bare
    if bare[:1] in ("[", "{") and ("array" if bare[0] == "[" else "object") in types:
        if _parses(bare):
            return bare
        spelled = _of_python(bare)
        if spelled is not None:
            return spelled
    return json.dumps(text, ensure_ascii=False)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_python(text: str) -> str | None:
    if text.count("[") + text.count("{") + text.count("(") > DEEPEST:
        return None
    try:
        value: Any = ast.literal_eval(text)
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
