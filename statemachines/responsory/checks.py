"""What a value may be: a count, text that UTF-8 can say, JSON.

Commands refuse what they cannot carry, and rows what they cannot store, by the same checks: so what
a machine has taken can be shown, stored and read again.

Numbers are whole, and small enough to be exact in every JSON reader; text is what UTF-8 can say
(RFC 7493, sections 2.1 and 2.2).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from responsory.errors import shown

Check: TypeAlias = Callable[[Any], Any]
"""Gives its argument back, or what it is as JSON. Raises ValueError where no such field can hold
it."""

LARGEST = 2**53 - 1
DEEPEST = 256
"""Levels of nesting in an echo."""


def unlike(value: object) -> ValueError:
    return ValueError(f"cannot be {shown(value)}")


def count(value: Any) -> Any:
    """A count, an index, a time in Unix seconds or a token id."""
    # bool is an int to isinstance, and no count is a bool.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return value
    raise unlike(value)


def counts(value: Any) -> Any:
    """A tuple of counts, such as token ids. Raises ValueError for anything else."""
    if not isinstance(value, tuple):
        raise unlike(value)
    for entry in value:
        count(entry)
    return value


def text(value: Any) -> Any:
    if not isinstance(value, str):
        raise unlike(value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"holds half a surrogate pair: {shown(value)}") from None
    return value


def flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise unlike(value)


def stop(value: Any) -> Any:
    """A stop string or a token id."""
    return text(value) if isinstance(value, str) else count(value)


def optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def one_of(*choices: object) -> Check:
    def check(value: Any) -> Any:
        if value not in choices:
            known = ", ".join(repr(choice) for choice in choices if choice is not None)
            raise ValueError(f"cannot be {shown(value)}; known: {known}")
        return value

    return check


def name(value: Any) -> Any:
    """Text that is not empty."""
    if text(value):
        return value
    raise ValueError("cannot be empty")


def echo(value: Any) -> dict[str, Any]:
    """A JSON object, as a copy that nothing else holds."""
    if not isinstance(value, Mapping):
        raise unlike(value)
    return {text(key): _json(member, 2) for key, member in value.items()}


def _json(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float):
        if finite(value):
            return value
        raise ValueError(f"holds {shown(value)}, which is not JSON")
    if depth > DEEPEST:
        raise ValueError(f"is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return {text(key): _json(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_json(member, depth + 1) for member in value]
    raise ValueError(f"holds {shown(value)}, which is not JSON")


def finite(value: float) -> bool:
    """Whether it has a JSON form that every reader takes; NaN has none."""
    return abs(value) <= sys.float_info.max


def log_probability(value: Any) -> float:
    """A number as a float; minus infinity for what is none, and for one that no float holds."""
    return float(value) if finite(value) else -math.inf


def optional_log_probability(value: Any) -> float | None:
    return None if value is None else log_probability(value)


def printable(value: Any) -> str:
    """Text with U+FFFD for each half of a surrogate pair: a failure must be told, whatever it
    says."""
    if not isinstance(value, str):
        raise unlike(value)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def valid(check: Check) -> Callable[[Any, Any, Any], None]:
    """A check as a validator of an attrs field."""

    def validate(_: Any, attribute: Any, value: Any) -> None:
        try:
            check(value)
        except ValueError as error:
            raise ValueError(f"{attribute.name} {error}") from None

    return validate
