"""Where a JSON value ends, told while it comes.

It reads the structure of JSON and not its letter: a string may hold any character, any word is a
scalar, a comma may stand before a bracket. So a value that only a careless model wrote has an end
too. What is no structure at all (a quote or a bracket out of place) breaks it.

Cost and memory: linear in the text, and in the depth of the brackets; nothing recurses.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto

SPACE = re.compile(r"\s*")
PLAIN = re.compile(r'[^"\\]*')
WORD = re.compile(r"[\w+\-.]*")


class Place(Enum):
    """What is read next."""

    VALUE = auto()
    ITEM = auto()
    """A value, or the end of its array."""
    KEY = auto()
    """A key, or the end of its object."""
    COLON = auto()
    COMMA = auto()
    """A comma, or the end of what is open."""
    IN_STRING = auto()
    ESCAPED = auto()
    IN_KEY = auto()
    ESCAPED_IN_KEY = auto()
    IN_WORD = auto()
    COMPLETE = auto()
    BROKEN = auto()


AFTER_CHAR: dict[tuple[Place, str], Place] = {
    (Place.VALUE, '"'): Place.IN_STRING,
    (Place.ITEM, '"'): Place.IN_STRING,
    (Place.KEY, '"'): Place.IN_KEY,
    (Place.COLON, ":"): Place.VALUE,
}
ESCAPE = {Place.IN_STRING: Place.ESCAPED, Place.IN_KEY: Place.ESCAPED_IN_KEY}
ESCAPED = {place: string for string, place in ESCAPE.items()}
MAY_END = frozenset({Place.ITEM, Place.KEY, Place.COMMA})


class JsonValue:
    """One value. ``read`` it piece by piece; then it is ``complete``, ``broken``, or neither."""

    __slots__ = ("_closers", "_place")

    def __init__(self) -> None:
        self._place = Place.VALUE
        self._closers: list[str] = []
        """Of the brackets that are open, the innermost last."""

    @property
    def complete(self) -> bool:
        return self._place is Place.COMPLETE

    @property
    def broken(self) -> bool:
        return self._place is Place.BROKEN

    def glance(self, text: str) -> str | None:
        """Read all of ``text``, a token or so, where the value goes on behind it, and give it.

        None: nothing was read, and ``read`` is due. It does what ``read`` would do at a fraction of
        its cost: structure of few characters comes again and again, so what it does is looked up.
        """
        place = self._place
        if place in IN_STRINGS and '"' not in text and "\\" not in text:
            return text
        closers = self._closers
        if not closers:
            return None
        key = (place, closers[-1], text)
        step = STEPS.get(key)
        if step is None:
            step = _learn(key)
        place, popped, pushed = step
        if popped:
            if popped >= len(closers):
                return None
            closers.pop()
        if pushed:
            closers += pushed
        self._place = place
        return text

    @classmethod
    def step(cls, place: Place, closer: str, text: str) -> tuple[Place, int, str]:
        """What ``text`` does where ``closer`` is the innermost; found out with either around it."""
        found = set[tuple[Place, int, str]]()
        for outer in "}]":
            value, least = cls(), 2
            value._place, value._closers = place, [outer, closer]
            for char in text:
                value.read(char, 0)
                least = min(least, len(value._closers))
            if value.complete or value.broken or least == 0:
                return UNKNOWN
            found.add((value._place, 2 - least, "".join(value._closers[least:])))
        return found.pop() if len(found) == 1 else UNKNOWN

    def read(self, text: str, at: int) -> int:
        """How far in ``text`` the value goes on from ``at``: to the end of the text, the end of the
        value, or the character that breaks it. White space before the value is read with it."""
        end = len(text)
        while at < end:
            place = self._place
            if place in ESCAPE:
                at = _past(PLAIN, text, at)
                if at < end:
                    self._place = ESCAPE[place] if text[at] == "\\" else self._after_string(place)
                    at += 1
            elif place in ESCAPED:
                self._place = ESCAPED[place]
                at += 1
            elif place is Place.IN_WORD:
                at = _past(WORD, text, at)
                if at < end:
                    self._place = self._after_value()
            elif place is Place.COMPLETE or place is Place.BROKEN:
                break
            else:
                at = _past(SPACE, text, at)
                if at < end:
                    self._place = self._after(place, text[at])
                    at += self._place is not Place.BROKEN
        return at

    def _after(self, place: Place, char: str) -> Place:
        """Where ``char`` leads, which is no white space, outside a string."""
        known = AFTER_CHAR.get((place, char))
        if known is not None:
            return known
        if place in MAY_END and self._closers and char == self._closers[-1]:
            self._closers.pop()
            return self._after_value()
        if place is Place.COMMA and char == ",":
            return Place.KEY if self._closers[-1] == "}" else Place.ITEM
        if place is Place.VALUE or place is Place.ITEM:
            if char == "{":
                self._closers.append("}")
                return Place.KEY
            if char == "[":
                self._closers.append("]")
                return Place.ITEM
            if WORD.fullmatch(char):
                return Place.IN_WORD
        return Place.BROKEN

    def _after_string(self, place: Place) -> Place:
        return Place.COLON if place is Place.IN_KEY else self._after_value()

    def _after_value(self) -> Place:
        return Place.COMMA if self._closers else Place.COMPLETE


SHORT = 16
"""Characters of a text whose step is worth being remembered."""
MOST_STEPS = 8192
STEPS: dict[tuple[Place, str, str], tuple[Place, int, str]] = {}
"""By place, innermost closer and text: the place after it, brackets closed (none or one) and the
closers of those that opened."""
NEVER = 2**30
UNKNOWN = (Place.BROKEN, NEVER, "")
"""The step depends on more than that, or ends the value."""
IN_STRINGS = frozenset(ESCAPE)


def _learn(key: tuple[Place, str, str]) -> tuple[Place, int, str]:
    """The step, remembered if it is likely to come again."""
    if len(key[2]) > SHORT:
        return UNKNOWN
    if len(STEPS) >= MOST_STEPS:
        STEPS.clear()
    STEPS[key] = step = JsonValue.step(*key)
    return step


def spelled_out(literal: str) -> str | None:
    """The text of a JSON string as it was written, quotes included; None where it is no string."""
    try:
        value = json.loads(literal, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of what the pattern finds at ``at``; it matches the empty text too."""
    found = pattern.match(text, at)
    return found.end() if found else at
