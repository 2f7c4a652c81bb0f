"""A value that is written as it is, as JSON of the type that its schema allows.

A string is passed on while it comes, once it can be nothing else: one that may be ``null`` is held
while it may become that. So is an array or an object where no string may stand in its place, with
what Python writes otherwise turned into JSON. Any other value is looked at when it is whole: what
is no JSON text of an allowed type is a string.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from responsory.segments.formats.python_literal import PythonLiteral

WORDS = {"True": "true", "False": "false", "None": "null"}
"""What models that learnt Python write for these."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
BEGUN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?")
LONGEST_NUMBER = 400
"""Characters of a number where a string may stand as well; a longer one is that."""
BEGUN = {"boolean": ("true", "false", "True", "False"), "null": ("null", "None")}
STRING = frozenset({"string"})
OPEN = re.compile(r"\s*(?:\[|\{)\s*")
SPACE = "".join(f"\\x{{{code:x}}}" for code in range(0x3001) if chr(code).isspace())
LOOKS = {
    kind: f"[{SPACE}]*(?:{looks})[{SPACE}]*"
    for kind, looks in {
        "boolean": "true|false|True|False",
        "null": "null|None",
        "integer": NUMBER.pattern,
        "number": NUMBER.pattern,
        "array": r"\[(?s:.*)",
        "object": r"\{(?s:.*)",
    }.items()
}
"""What matches text that may be read as a value of a type, as a whole."""
DEEPEST = 200
"""Brackets in a literal of Python; a deeper one is a string."""


def escaped(text: str) -> str:
    """Text as it stands inside a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class TaggedValue:
    """``add`` text as it comes and then ``end`` it; both give the JSON that is certain."""

    __slots__ = ("_blank", "_held", "_space", "_types", "_whole", "is_string", "literal")

    def __init__(self, types: frozenset[str]) -> None:
        self._types = types
        self.is_string = types == STRING
        """Whatever comes is one; it has begun."""
        self.literal: PythonLiteral | None = None
        """Reads an array or an object, once one has begun."""
        self._space = ""
        """White space behind the literal, which is of the value where text follows."""
        self._whole = False
        """Only all of it tells what it is."""
        self._held: list[str] = []
        self._blank = True
        """No more than white space is held."""

    def begin(self) -> str:
        """What stands before the first text."""
        return '"' if self.is_string else ""

    def add(self, text: str) -> str:
        """Text of the value."""
        if self.is_string:
            return escaped(text)
        if self.literal is not None:
            return self._read(self.literal, text)
        self._held.append(text)
        self._blank = self._blank and not text.strip()
        return "" if self._whole or self._blank else self._decided()

    def end(self) -> str:
        """The value is whole."""
        if self.is_string:
            return '"'
        if self.literal is not None:
            return self.literal.finish()
        return as_json("".join(self._held), self._types)

    def _decided(self) -> str:
        """What is held, if it tells what the value is."""
        held = "".join(self._held)
        if "string" in self._types:
            bare = held.strip()
            self._whole = _is_bracket(bare, self._types)
            if self._whole or _may_be_other(bare, self._types):
                return ""
            self.is_string = True
            self._held.clear()
            return f'"{escaped(held)}'
        begun = _begins_literal(held, self._types)
        self._whole = begun is False
        if not begun:
            return ""
        self.literal = PythonLiteral()
        self._held.clear()
        return self._read(self.literal, held.lstrip())

    def _read(self, literal: PythonLiteral, text: str) -> str:
        """What more text of a literal is in JSON; what is none is passed on as it is."""
        at, shown = literal.read(text, 0)
        rest = self._space + text[at:]
        if not literal.complete:
            return shown + rest
        kept = rest.rstrip()
        self._space = rest[len(kept) :]
        return shown + kept


def _may_be_other(bare: str, types: frozenset[str]) -> bool:
    """Whether text that begins so may be a value of an allowed type that is no string."""
    words = [word for kind, words in BEGUN.items() if kind in types for word in words]
    if any(word.startswith(bare) for word in words):
        return True
    numbers = types & {"number", "integer"} and len(bare) <= LONGEST_NUMBER
    return bool(numbers and BEGUN_NUMBER.fullmatch(bare))


def _is_bracket(bare: str, types: frozenset[str]) -> bool:
    """Whether text that begins so may be an array or an object, if those are allowed."""
    return ("array" in types and bare[:1] == "[") or ("object" in types and bare[:1] == "{")


def _begins_literal(text: str, types: frozenset[str]) -> bool | None:
    """Whether an array or an object begins here, as JSON or Python write it; None: that is not
    known yet."""
    start = text.lstrip()[:1]
    if not start:
        return None
    if start not in "[{" or ("array" if start == "[" else "object") not in types:
        return False
    opened = OPEN.match(text)
    following = text[opened.end() :][:1] if opened else ""
    if not following:
        return None
    return following in ("\"']{[-0123456789tfnTFN" if start == "[" else "\"'}")


def as_json(text: str, types: frozenset[str]) -> str:
    """The value as JSON of one of the types, or as a string."""
    bare = text.strip()
    word = WORDS.get(bare, bare)
    if word in ("true", "false") and "boolean" in types:
        return word
    if word == "null" and "null" in types:
        return word
    if types & {"number", "integer"} and NUMBER.fullmatch(bare):
        if "string" not in types or len(bare) <= LONGEST_NUMBER:
            return bare
    elif _is_bracket(bare, types):
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
