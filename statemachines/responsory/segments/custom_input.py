"""The input of a custom tool, taken out of the arguments in which a model writes it.

A model writes the call of a custom tool as that of a function of one string: ``{"input": "…"}``.
What is shown is the string's text, decoded while it comes; what stands behind the string is
dropped. Arguments that begin otherwise are no such object, and are shown as they stand. No
arguments, and an object without keys, are an empty input.

Nothing is mended: an escape that JSON does not know is shown as it was written, and half a
surrogate pair, which no text can hold, is U+FFFD.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.segments.regions import Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HEAD = '{"input":"'
SPACED = frozenset({0, 1, 8, 9})
"""The characters of the head before which white space may stand: not those of the key."""
NO_KEY = 1
"""Where an object without keys would end."""
SPACE = " \t\r\n"
ORDINARY = re.compile(r'[^"\\]*')
SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = frozenset("0123456789abcdefABCDEF")
UNKNOWN = "\ufffd"


class Place(Enum):
    HEAD = auto()
    STRING = auto()
    BEHIND = auto()
    RAW = auto()
    """It is no such object."""


class CustomInput:
    """One call's arguments, unwrapped: ``feed`` them, then ``rest``."""

    __slots__ = ("_escape", "_half", "_held", "_known", "_place")

    def __init__(self) -> None:
        self._place = Place.HEAD
        self._known = 0
        """Characters of the head so far."""
        self._held: list[str] = []
        """The arguments so far, while the head is not complete."""
        self._escape = ""
        """The beginning of an escape."""
        self._half = ""
        """The first half of a surrogate pair."""

    @property
    def inside(self) -> bool:
        """The string has begun and not ended."""
        return self._place is Place.STRING

    def glance(self, look: Callable[[str], str | None], text: str) -> str | None:
        """What ``text`` adds to the input where ``look`` takes it and it stays inside. None:
        nothing was taken. A text that would add nothing yet is not taken."""
        before = self._escape, self._half
        added = self.feed(text)
        if added and self._place is Place.STRING and (shown := look(text)) is not None:
            if shown == text:
                return added
            # What was looked at is not the arguments' own text.
            self._escape, self._half = before
            return self.feed(shown)
        self._place = Place.STRING
        self._escape, self._half = before
        return None

    def feed(self, text: str) -> str:
        """What ``text``, which goes on with the arguments, adds to the input."""
        at = self._read_head(text) if self._place is Place.HEAD else 0
        if self._place is Place.RAW:
            held = "".join(self._held)
            self._held.clear()
            return held + text
        return self._decode(text, at) if self._place is Place.STRING else ""

    def rest(self) -> str:
        """What is held, as it stands: the arguments have ended."""
        held = "".join(self._held) + self._take_half() + self._escape
        self._held.clear()
        self._escape = ""
        return held

    def _read_head(self, text: str) -> int:
        """Where in ``text`` the string begins, if it does."""
        for at, char in enumerate(text):
            known = self._known
            if char == HEAD[known]:
                self._known += 1
                if self._known == len(HEAD):
                    self._place = Place.STRING
                    self._held.clear()
                    return at + 1
            elif char not in SPACE or known not in SPACED:
                empty = known == NO_KEY and char == "}"
                self._place = Place.BEHIND if empty else Place.RAW
                if empty:
                    self._held.clear()
                return at
        self._held.append(text)
        return len(text)

    def _decode(self, text: str, at: int) -> str:
        if not self._escape and not self._half and "\\" not in text and '"' not in text:
            return text[at:]
        decoded = []
        while at < len(text):
            if self._escape:
                at, char = self._read_escape(text, at)
                decoded.append(char)
                continue
            found = ORDINARY.match(text, at)
            end = found.end() if found else at
            if end > at:
                decoded += (self._take_half(), text[at:end])
            if end < len(text) and text[end] == '"':
                decoded.append(self._take_half())
                self._place = Place.BEHIND
                break
            if end < len(text):
                self._escape = "\\"
            at = end + 1
        return "".join(decoded)

    def _read_escape(self, text: str, at: int) -> tuple[int, str]:
        """One more character of an escape: where to go on, and what is certain by it."""
        char, escape = text[at], self._escape
        if escape == "\\" and char != "u":
            self._escape = ""
            return at + 1, self._take_half() + SHORT.get(char, escape + char)
        if escape != "\\" and char not in HEX:
            # No escape, and the character may end the string.
            self._escape = ""
            return at, self._take_half() + escape
        self._escape = escape + char
        if len(self._escape) < len("\\uXXXX"):
            return at + 1, ""
        _, _, digits = self._escape.partition("u")
        self._escape = ""
        return at + 1, self._unit(int(digits, 16))

    def _unit(self, unit: int) -> str:
        """A code unit of UTF-16."""
        half = self._half
        if 0xDC00 <= unit < 0xE000 and half:
            self._half = ""
            return chr(0x10000 + ((ord(half) - 0xD800) << 10) + unit - 0xDC00)
        before = self._take_half()
        if 0xD800 <= unit < 0xDC00:
            self._half = chr(unit)
            return before
        return before + (UNKNOWN if 0xDC00 <= unit < 0xE000 else chr(unit))

    def _take_half(self) -> str:
        """What became of the half pair, whose other half does not come."""
        half, self._half = self._half, ""
        return UNKNOWN if half else ""


class CustomInputs:
    """Regions with the arguments of custom calls unwrapped; those of functions are as they were."""

    __slots__ = ("_input",)

    def __init__(self) -> None:
        self._input: CustomInput | None = None
        """That of the open call."""

    def unwrap(self, regions: Iterable[Region]) -> list[Region]:
        unwrapped = []
        for region in regions:
            says, custom = region.says, self._input
            if isinstance(says, CallOpened):
                self._input = CustomInput() if says.kind == "custom" else None
            elif isinstance(says, CallClosed):
                unwrapped += self.rest(region.start)
            elif custom is not None and region.channel is CallInput and region.text:
                text = custom.feed(region.text)
                region = Region(CallInput, region.start, region.end, text)
            unwrapped.append(region)
        return unwrapped

    def rest(self, at: int) -> list[Region]:
        """What is held of the open call's input, at its end in the raw text."""
        custom, self._input = self._input, None
        rest = "" if custom is None else custom.rest()
        return [Region(CallInput, at, at, rest)] if rest else []

    def glance(self, look: Callable[[str], str | None]) -> Callable[[str], str | None] | None:
        """The same of what takes the arguments at a glance, inside the input."""
        custom = self._input
        if custom is None:
            return look
        return partial(custom.glance, look) if custom.inside else None
