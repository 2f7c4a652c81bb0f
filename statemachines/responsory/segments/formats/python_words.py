"""Signs, words and escapes of Python's literals, and the same in JSON."""

from __future__ import annotations

import json
import re

WORD = re.compile(r"[\w.+\-]*")
SPACE = re.compile(r"\s*")
PLAIN = re.compile(r"[^'\"\\\x00-\x1f]*")
SIMPLE = {
    "n": "\\n", "t": "\\t", "r": "\\r", "b": "\\b", "f": "\\f", "a": "\\u0007", "v": "\\u000b",
    "\\": "\\\\", "'": "'", '"': '\\"', "\n": "",
}  # fmt: skip
ESCAPE = re.compile(r"[0-7]{1,3}|x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}")
BRACKETS = {"[": "]", "(": ")", "{": "}"}
IN_JSON = {"]": "]", ")": "]", "}": "}"}
LONGEST_WORD = 4096
"""Characters of a number or a bare word; a longer one is none."""
WORDS = {
    "True": "true", "False": "false", "None": "null",
    "true": "true", "false": "false", "null": "null",
}  # fmt: skip
NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?")
BASED = re.compile(r"[+-]?0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)")
LONGEST_BASED = 1024
"""Characters of a number of another base; more of them is no number of a tool's."""
CODES = {"x": 2, "u": 4, "U": 8}


def coded(escape: str) -> str:
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
