"""Fixed text with a few gaps in it, told while it comes: whether it is there, or may still come.

A header of a call, and what stands between two values, are such phrases. What may still come is
asked of a pattern of all beginnings, so a look-alike is known at the first character that is wrong.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from responsory.immutable import immutable

LONGEST = 256
"""Characters of a gap: a longer name, or more white space, is no header."""


@immutable
class Gap:
    """Text that ``pattern`` matches, of single characters of which up to ``LONGEST`` may come;
    found under ``name``. ``least``: how many must come. ``first``: the pattern of the first one,
    where that is another."""

    name: str
    pattern: str
    least: int = 1
    first: str = ""

    def regex(self, least: int) -> str:
        """The gap, of ``least`` characters or more."""
        if not self.first:
            return f"{self.pattern}{{{least},{LONGEST}}}"
        rest = f"{self.first}{self.pattern}{{0,{LONGEST}}}"
        return rest if least else f"(?:{rest})?"


@immutable
class Maybe:
    """These, or nothing."""

    elements: tuple[Element, ...]


@immutable
class Either:
    """One of these texts, found under ``name``."""

    name: str
    texts: tuple[str, ...]


Element: TypeAlias = str | Gap | Maybe | Either

SPACE = Gap("", r"\s", 0)
"""White space, or none."""


class Phrase:
    """``elements`` one after another, the last of which should be fixed text."""

    __slots__ = ("_beginning", "_whole", "elements")

    def __init__(self, *elements: Element) -> None:
        self.elements = elements
        self._whole = re.compile(_whole(elements))
        self._beginning = re.compile(_beginning(elements, ""))

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """The phrase where it stands at ``at``."""
        return self._whole.match(text, at)

    def may_come(self, text: str, at: int) -> bool:
        """Whether all of the text from ``at`` on is the beginning of the phrase."""
        return self._beginning.fullmatch(text, at) is not None


def _whole(elements: tuple[Element, ...]) -> str:
    return "".join(map(_one, elements))


def _one(element: Element) -> str:
    if isinstance(element, str):
        return re.escape(element)
    if isinstance(element, Maybe):
        return f"(?:{_whole(element.elements)})?"
    if isinstance(element, Either):
        return f"(?P<{element.name}>{'|'.join(map(re.escape, element.texts))})"
    gap = element.regex(element.least)
    return f"(?P<{element.name}>{gap})" if element.name else gap


def _beginning(elements: tuple[Element, ...], after: str) -> str:
    """A pattern of all beginnings of the phrase, the empty and the whole one too. ``after``: that
    of what follows it."""
    pattern = after
    for element in reversed(elements):
        if isinstance(element, str):
            parts = [re.escape(element[:length]) for length in reversed(range(len(element)))]
            pattern = f"(?:{re.escape(element)}{pattern}|{'|'.join(parts)})"
        elif isinstance(element, Maybe):
            pattern = f"(?:{_beginning(element.elements, pattern)}|{pattern})"
        elif isinstance(element, Either):
            ways = [_beginning((text,), pattern) for text in element.texts]
            pattern = f"(?:{'|'.join(ways)})"
        else:
            pattern = f"(?:{element.regex(element.least)}{pattern}|{element.regex(0)})"
    return pattern
