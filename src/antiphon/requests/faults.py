"""The refusals that more than one check makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import InvalidRequest, shortened

MISSING = "missing_required_parameter"

MOST_REPEATED = 100
"""Characters of a value."""

JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def invalid_type(value: Any, *expected: type) -> InvalidRequest:
    """The refusal of a value of the wrong JSON type."""
    names = " or ".join(JSON_NAMES[kind] for kind in expected)
    found = JSON_NAMES.get(type(value), "something else")
    return InvalidRequest(f"Expected {names}, got {found}.", code="invalid_type")


def out_of_range(kind: str, *, below: bool) -> InvalidRequest:
    """The refusal of a number that no limit needs to be named for; ``kind`` as in the codes."""
    side = "below_min" if below else "above_max"
    return InvalidRequest("The number is out of range.", code=f"{kind}_{side}_value")


def quoted(value: str) -> str:
    """What a client sent, as a message may repeat it."""
    return f"'{shortened(value, MOST_REPEATED)}'"


def missing(param: str) -> InvalidRequest:
    """The refusal of a body that lacks a required field."""
    param = shortened(param)
    return InvalidRequest(f"Missing required parameter: `{param}`.", code=MISSING, param=param)


def at(path: str, error: InvalidRequest) -> InvalidRequest:
    """``error`` as it reads when its param is relative to ``path``; either may be empty."""
    inner = error.param or ""
    place = f"{path}{inner}" if not path or not inner or inner[0] == "[" else f"{path}.{inner}"
    place = shortened(place)
    if error.code == MISSING:
        return missing(place)
    return InvalidRequest(f"Invalid `{place}`: {error.message}", code=error.code, param=place)
