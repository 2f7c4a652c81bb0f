"""The arguments of a call as JSON text, passed on while it comes.

They are the model's own text, byte for byte, without the white space around it. Null and an empty
string are no arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.segments.json_value import JsonValue

if TYPE_CHECKING:
    from collections.abc import Callable

NONE_AT_ALL = ('""', "null")
"""Arguments that say that there are none."""


class ArgumentsText:
    """``read`` it piece by piece; then it is ``complete``, ``broken``, or neither. ``begun``: some
    of it came."""

    __slots__ = ("_first", "_value", "begun")

    def __init__(self) -> None:
        self._value = JsonValue()
        self._first = ""
        """The beginning, while they may be none at all."""
        self.begun = False

    @property
    def complete(self) -> bool:
        return self._value.complete

    @property
    def broken(self) -> bool:
        return self._value.broken

    @property
    def glance(self) -> Callable[[str], str | None] | None:
        """As of ``CallReader``."""
        return self._value.glance if self.begun and not self._first else None

    def read(self, text: str, at: int) -> tuple[int, str]:
        """How far they go on in ``text`` from ``at`` on, and what there is to show of that."""
        end = self._value.read(text, at)
        shown = text[at:end]
        if not self.begun or self._first:
            shown = (self._first + shown).lstrip()
            self.begun = self.begun or bool(shown)
            none = any(one.startswith(shown) for one in NONE_AT_ALL)
            self._first = shown if none and not self.broken else ""
            if self._first:
                if self.complete and shown not in NONE_AT_ALL:
                    self._first = ""
                else:
                    return end, ""
        return end, shown

    def rest(self) -> str:
        """What is held of them when the text ends before they do."""
        return self._first
