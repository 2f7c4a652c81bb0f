"""Obfuscation: on every event that can have it, or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge


class Padding:
    """Whether the events of one stream are padded: the first that can be tells it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._padded: bool | None = None

    def take(self, data: Mapping[str, Any]) -> None:
        """An event that can be padded."""
        padded = "obfuscation" in data
        if self._padded not in (None, padded):
            self._judge.broken("obfuscation-key", f"`obfuscation` {_there(padded)}",
                               f"`obfuscation` {_there(not padded)}")  # fmt: skip
        self._padded = padded


def _there(there: bool) -> str:
    return "there" if there else "absent"
