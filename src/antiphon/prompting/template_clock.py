"""How long a template may take and how much it may write, and the looks at both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import attrs
from jinja2 import TemplateError

MAX_CHARACTERS = 1 << 24
"""Longest prompt a template may write; far above any context length."""
MAX_MADE = 1 << 30
"""Characters in all that it may make on the way: what it builds up may be kept until its end."""
MAX_SECONDS = 5.0
"""Longest a template may take; published ones take milliseconds for a long conversation."""

T = TypeVar("T")


class TooMuch(TemplateError):
    """A template takes too long, or what it makes gets too long."""


@attrs.define
class _Left:
    """What is left to the present rendering."""

    clock: Callable[[], float]
    end: float
    characters: int = MAX_MADE


_left: ContextVar[_Left | None] = ContextVar("left", default=None)


def look() -> None:
    """Raises ``TooMuch`` when the time of the present rendering is over."""
    left = _left.get()
    if left is not None and left.clock() > left.end:
        raise TooMuch("it takes too long")


def require_size(size: int, most: int = MAX_CHARACTERS) -> None:
    """Raises ``TooMuch`` for a value of more characters or members than there may be."""
    if size > most:
        raise TooMuch(f"a value is longer than {most} characters")


def require_room(size: int) -> None:
    """As ``require_size``, for what is made: all that a rendering makes has its limit as well."""
    require_size(size)
    left = _left.get()
    if left is not None:
        left.characters -= size
        if left.characters < 0:
            raise TooMuch("it takes too much memory")


def looked_at(values: Iterable[T]) -> Iterator[T]:
    """The values, with a look at the clock at each."""
    for value in values:
        look()
        yield value


@contextmanager
def time_limit(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """What is rendered inside has ``MAX_SECONDS`` by this clock."""
    token = _left.set(_Left(clock, clock() + MAX_SECONDS))
    try:
        yield
    finally:
        _left.reset(token)
