"""Bytes to a JSON object, or one ``invalid_json`` error.

Stricter than ``json.loads``: UTF-8 only, an object at the top, no ``NaN`` or infinities, no lone
surrogates (they cannot be sent back as UTF-8), at most ``MAX_DEPTH`` levels (RFC 8259 §9 allows
such limits).
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from antiphon.errors import InvalidRequest

MAX_DEPTH = 200


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``. Raises ``InvalidRequest`` (code ``invalid_json``)."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise _invalid("The request body is not valid UTF-8.") from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _invalid(
            f"The request body is not valid JSON: {error.msg} "
            f"(line {error.lineno}, column {error.colno})."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise _invalid(f"The request body holds a number out of range: {error}.") from None
    if not isinstance(value, dict):
        raise _invalid("The request body must be a JSON object.")
    _check(value)
    return value


def _check(root: Any) -> None:
    """Depth and surrogates, without recursion."""
    level, depth = [root], 1
    while level:
        if depth > MAX_DEPTH:
            raise _too_deep()
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value)
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str) and not value.isascii():
                try:
                    value.encode()
                except UnicodeEncodeError:
                    raise _invalid("The request body holds a lone surrogate.") from None
        level, depth = below, depth + 1


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _invalid("The request body holds a number out of range.")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _invalid(f"The request body is not valid JSON: {name} is no JSON value.")


def _too_deep() -> InvalidRequest:
    return _invalid(f"The request body is nested more than {MAX_DEPTH} levels deep.")


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_json")
