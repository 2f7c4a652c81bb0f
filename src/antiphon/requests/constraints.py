"""Constraints that a field's type can carry: ``Annotated[int, Between(1, 128)]``.

Each checks one already typed value and raises ``InvalidRequest`` with the code of the OpenAI API
for that violation; the converter adds the param.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

import attrs

from antiphon.errors import InvalidRequest, shortened
from antiphon.requests.faults import MOST_REPEATED, quoted


class Constraint(Protocol):
    """A check on a value of the annotated type."""

    def check(self, value: Any) -> None:
        """Raise ``InvalidRequest`` when ``value`` violates the constraint."""
        ...


@attrs.frozen
class Between:
    """A number in ``[low, high]``; either end may be open."""

    low: float | None = None
    high: float | None = None

    def check(self, value: float) -> None:
        kind = "integer" if isinstance(value, int) else "decimal"
        if self.low is not None and value < self.low:
            raise InvalidRequest(
                f"{_digits(value)} is below the minimum, {self.low}.",
                code=f"{kind}_below_min_value",
            )
        if self.high is not None and value > self.high:
            raise InvalidRequest(
                f"{_digits(value)} is above the maximum, {self.high}.",
                code=f"{kind}_above_max_value",
            )


def _digits(value: float) -> str:
    return shortened(str(value), MOST_REPEATED)


@attrs.frozen
class Only:
    """A setting of the API of which this server offers one value."""

    value: Any

    def check(self, value: Any) -> None:
        if value != self.value:
            raise InvalidRequest(
                f"{json.dumps(value)} is not supported; only {json.dumps(self.value)} is.",
                code="unsupported_value",
            )


@attrs.frozen
class Offered:
    """A string of which this server offers some values, though others are legal elsewhere."""

    values: tuple[str, ...]

    def check(self, value: str) -> None:
        if value not in self.values:
            names = ", ".join(f"'{offered}'" for offered in self.values)
            raise InvalidRequest(
                f"{quoted(value)} is not supported; only {names} is.", code="unsupported_value"
            )


@attrs.frozen
class Refused:
    """A field that is known and not offered at all."""

    def check(self, value: Any) -> None:
        if value is not None:
            raise InvalidRequest("The parameter is not supported.", code="unsupported_parameter")


@attrs.frozen
class Length:
    """A string, list or object of ``low`` to ``high`` characters, items or properties."""

    low: int = 0
    high: int | None = None

    def check(self, value: str | list[Any] | dict[str, Any]) -> None:
        size = len(value)
        if size < self.low:
            code = "empty_array" if isinstance(value, list) else "invalid_value"
            raise InvalidRequest(f"At least {self.low} must be given.", code=code)
        if self.high is not None and size > self.high:
            if isinstance(value, str):
                code, unit = "string_above_max_length", "characters"
            elif isinstance(value, list):
                code, unit = "array_above_max_length", "items"
            else:
                code, unit = "object_above_max_properties", "properties"
            raise InvalidRequest(f"{size} {unit} are above the maximum, {self.high}.", code=code)


@attrs.frozen
class Pattern:
    """A string that matches a regular expression as a whole."""

    regex: str

    def check(self, value: str) -> None:
        if not re.fullmatch(self.regex, value):
            raise InvalidRequest(
                f"The value must match the pattern {self.regex}.", code="invalid_value"
            )
