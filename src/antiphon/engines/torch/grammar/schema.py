"""What is asked of a JSON Schema before it is compiled: bounds that the compiler does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from math import lcm
from typing import Any

from antiphon.engines.torch.grammar.refused import GrammarRefused

MOST_MULTIPLE = 100_000
"""Of the least common multiple of all ``multipleOf``: the compiler makes a state for each
remainder, which takes 0.3 s for so many."""

LONGEST_PATTERNS = 16 * 1024
"""Characters of all patterns together."""

LARGEST_EXACT = 2**53
"""Beyond it the compiler writes another number than the one that is asked for."""


def read_schema(text: str) -> Any:
    """The schema. Raises ``GrammarRefused`` for what is no JSON text, or nested too deeply."""
    try:
        return json.loads(text, parse_float=Decimal)
    except RecursionError:
        raise GrammarRefused("it is nested too deeply") from None
    except ValueError as failure:
        raise GrammarRefused(f"it is not a JSON text: {failure}") from failure


def check_schema(schema: Any) -> None:
    """Raises ``GrammarRefused`` for a schema that would take too long to compile, or come out as
    another one."""
    multiples: dict[Decimal, str] = {}
    patterns = 0
    for place, key, value in entries(schema):
        if key == "multipleOf" and isinstance(value, int | Decimal) and value > 0:
            multiples.setdefault(Decimal(value), f"{place}/multipleOf")
        elif key == "pattern" and isinstance(value, str):
            patterns += len(value)
        elif key == "patternProperties" and isinstance(value, dict):
            patterns += sum(map(len, value))
        elif key in ("const", "enum"):
            _check_numbers(value if isinstance(value, list) else [value], f"{place}/{key}")
        if patterns > LONGEST_PATTERNS:
            raise GrammarRefused(
                f"{place}/{key}: the patterns of a schema may have {LONGEST_PATTERNS} characters "
                "together"
            )
    _check_multiples(multiples)


def _check_numbers(values: list[Any], place: str) -> None:
    for value in values:
        if isinstance(value, int) and abs(value) > LARGEST_EXACT:
            raise GrammarRefused(
                f"{place}: {Decimal(value):.0e} is too large to be written exactly"
            )


def _check_multiples(multiples: dict[Decimal, str]) -> None:
    least = min((int(one.as_tuple().exponent) for one in multiples), default=0)
    if least < -18:
        raise GrammarRefused("multipleOf is told to 18 decimal places at most")
    together = 1
    for multiple, place in multiples.items():
        if multiple >= 10**18:
            raise GrammarRefused(f"{place}: the number is too large")
        whole = int(multiple.scaleb(-min(least, 0)))
        # Alone, 0.00001 is as easy as 1: what counts is what is left of the common scale.
        together = lcm(together, whole)
        if together > MOST_MULTIPLE:
            raise GrammarRefused(
                f"{place}: the least common multiple of all multipleOf may be {MOST_MULTIPLE} at "
                "most"
            )


def entries(schema: Any) -> Iterator[tuple[str, str, Any]]:
    """(JSON pointer of the object, key, value) of all that is in the schema, outermost first."""
    open_values: list[tuple[str, Any]] = [("", schema)]
    while open_values:
        place, value = open_values.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                yield place, key, inner
                open_values.append((f"{place}/{escaped(key)}", inner))
        elif isinstance(value, list):
            open_values += ((f"{place}/{index}", inner) for index, inner in enumerate(value))


def escaped(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
