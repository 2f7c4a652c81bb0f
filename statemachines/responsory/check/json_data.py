"""The data of an event: one JSON object (RFC 8259) that every reader reads alike (RFC 7493).

``json.loads`` alone takes more: NaN, a key twice, half a surrogate pair, a number that becomes
infinite. Two readers of such a text may see two things, so it is refused before it means anything.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

MAX_DEPTH = 200
"""Arrays and objects inside each other."""
MAX_DIGITS = 300
"""Of an integer: a double has a place for 308."""

TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]')
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
COMPACT = re.compile(
    r'(?:"(?:[^"\\]++|\\["\\bfnrt]|\\u00[01][0-9a-fA-F])*+"|[^"\s]++)*+', re.DOTALL
)


class BadData(Exception):
    """``rule`` is ``json-object`` or ``i-json``; the message is what was found."""

    def __init__(self, rule: str, found: str) -> None:
        super().__init__(found)
        self.rule = rule


def read_object(text: str) -> dict[str, Any]:
    """The object. Raises BadData."""
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadData("json-object", f"no JSON: {error.msg} at column {error.pos + 1}") from None
    except RecursionError:
        # Less stack than usual was left; the text is no deeper than is allowed.
        raise BadData("i-json", "JSON too deep for what is left of the stack") from None
    if not isinstance(value, dict):
        raise BadData("json-object", f"a JSON {_NAMES[type(value)]}, not an object")
    if SURROGATE.search(text):
        _check_surrogates(value)
    return value


def is_compact(text: str) -> bool:
    """No white space between tokens, and nothing escaped that need not be."""
    return COMPACT.fullmatch(text) is not None


def _check_depth(text: str) -> None:
    depth = 0
    for token in TOKEN.finditer(text):
        if token.group() in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise BadData("i-json", f"JSON deeper than {MAX_DEPTH} levels")
        elif token.group() in ("]", "}"):
            depth -= 1


def _check_surrogates(value: dict[str, Any]) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise BadData("i-json", f"half a surrogate pair, {half}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise BadData("i-json", f"the key {key[:40]!a} twice in one object")
            seen.add(key)
    return found


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise BadData("i-json", f"an integer of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise BadData("i-json", f"{text[:40]}, a number that no double holds")
    return value


def _constant(text: str) -> NoReturn:
    raise BadData("json-object", f"no JSON: {text}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
_NAMES: dict[type, str] = {
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
