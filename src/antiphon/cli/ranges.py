"""The numbers that flags take: what is beyond them would fail later, on a connection."""

from __future__ import annotations

import math
from typing import Any

import click

LEAST_S = 0.001
DAY_S = 86_400.0
GIB = 2**30
MANY = 10**6


class FiniteRange(click.FloatRange):
    """A range of numbers: ``nan`` lies between any two bounds for click."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As click's."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class _RangeOrOff(FiniteRange):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if 0 < number < LEAST_S:
            self.fail(f"{value} is neither 0 nor at least {LEAST_S}.", param, ctx)
        return number


SECONDS = FiniteRange(LEAST_S, DAY_S)
SECONDS_OR_OFF = _RangeOrOff(0, DAY_S)
PER_SECOND = FiniteRange(0, MANY, min_open=True)
COUNT = click.IntRange(1, MANY)
COUNT_OR_OFF = click.IntRange(0, MANY)
