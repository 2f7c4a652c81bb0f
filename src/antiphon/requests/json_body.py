"""Bytes to a JSON object, or one error, ``invalid_json`` in all cases but one.

Stricter than ``json.loads``: UTF-8 only, an object at the top, no ``NaN`` or infinities, no lone
surrogates (they cannot be sent back as UTF-8), at most ``MAX_DEPTH`` levels (RFC 8259 §9 allows
such limits).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests import pieces
from antiphon.requests.faults import at, out_of_range

MAX_DEPTH = 200


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``.

    Raises ``InvalidRequest``: code ``invalid_json``, or for an integer of more digits than Python
    converts the code of an integer out of range, and the param of the first one.
    """
    huge = False
    try:
        text = body.decode("utf-8")
        try:
            value = _decoded(text, _decoder)
        except json.JSONDecodeError:
            raise
        except ValueError:
            huge = True
            value = _decoded(text, _decoder_of_huge)
    except UnicodeDecodeError:
        raise _invalid("The request body is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        raise _invalid(
            f"The request body is not valid JSON: {error.msg} "
            f"(line {error.lineno}, column {error.colno})."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        raise _invalid("The request body must be a JSON object.")
    _check_depth(body, value)
    _check_surrogates(body)
    if huge and (found := _place_of_huge(value)):
        path, number = found
        raise at(path.removeprefix("."), out_of_range("integer", below=number.digits[0] == "-"))
    return value


def _decoded(text: str, decoder: json.JSONDecoder) -> Any:
    if len(text) < pieces.LONG:
        return decoder.decode(text)
    return pieces.decode(text, decoder, deepest=MAX_DEPTH)


_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _check_depth(body: bytes, root: dict[str, Any]) -> None:
    """Level by level, and not at all where the body has too few brackets to be deep."""
    brackets = body.translate(None, _NO_BRACKETS)
    # Not more than so many have not been seen yet, strings may hold some of the brackets.
    left = brackets.count(b"[") + brackets.count(b"{")
    level: list[Any] = [root]
    for depth in range(1, MAX_DEPTH + 1):
        left -= len(level)
        if depth + left <= MAX_DEPTH:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if outer.__class__ is dict else outer)
            if inner.__class__ is dict or inner.__class__ is list
        ]
        if not level:
            return
    raise _too_deep()


_LONE = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])"
    rb"|[c-fC-F](?<!\\u[dD][89abAB]..\\u[dD][c-fC-F]))"
)
"""The escape of one half of a surrogate pair, the other half not being its neighbour."""
_HALF = re.compile(rb"\\u[dD]")
"""What may be one, found faster than that it is alone."""
PAIR = 12
"""Bytes of the escapes of both."""
WINDOW = 256 * 1024


def _check_surrogates(body: bytes) -> None:
    """Of bytes that are UTF-8 and JSON: a lone surrogate can only be an escape there."""
    if not _HALF.search(body):
        return
    # An escaped backslash is no beginning of another escape, but it does part two of them.
    body = body.replace(rb"\\", b"--")
    for start in range(0, len(body), WINDOW):  # no search is long: other threads have their turn
        end = start + WINDOW
        if (found := _LONE.search(body, start, end + PAIR)) and found.start() < end:
            raise _invalid("The request body holds a lone surrogate.")


@attrs.frozen
class _Huge:
    """An integer of more digits than Python converts."""

    digits: str


def _integer(digits: str) -> int | _Huge:
    try:
        return int(digits)
    except ValueError:
        return _Huge(digits)


def _place_of_huge(value: Any) -> tuple[str, _Huge] | None:
    """The first one in ``value`` and the path to it; none if it had a name that came again."""
    for key, inner in value.items() if value.__class__ is dict else enumerate(value):
        if inner.__class__ is dict or inner.__class__ is list:
            found = _place_of_huge(inner)
        elif inner.__class__ is _Huge:
            found = "", inner
        else:
            continue
        if found is not None:
            step = f".{key}" if value.__class__ is dict else f"[{key}]"
            return step + found[0], found[1]
    return None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _invalid("The request body holds a number out of range.")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid(f"The request body is not valid JSON: {name} is no JSON value.")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_decoder_of_huge = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_integer,
)


def _too_deep() -> InvalidRequest:
    return _invalid(f"The request body is nested more than {MAX_DEPTH} levels deep.")


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_json")
