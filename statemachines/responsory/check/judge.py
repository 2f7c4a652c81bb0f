"""The judge of one stream: which rules its profile keeps, and the exception that ends a check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from responsory.check.rules import kept_by

if TYPE_CHECKING:
    from responsory.check.profiles import Profile


class RuleBroken(Exception):
    """A rule that the profile keeps is broken; the checker adds the place."""

    def __init__(self, rule: str, found: str, due: str) -> None:
        super().__init__(rule, found, due)
        self.rule = rule
        self.found = found
        self.due = due


class Judge:
    """Decides by the profile whether a rule matters."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._kept = kept_by(profile.name)

    def keeps(self, rule: str) -> bool:
        """Whether the profile holds streams to ``rule``. Raises KeyError for no rule."""
        return self._kept[rule]

    def broken(self, rule: str, found: str, due: str = "") -> None:
        """Raises RuleBroken, unless the profile leaves the rule out."""
        if self._kept[rule]:
            raise RuleBroken(rule, found, due)

    def equal(self, rule: str, what: str, found: Any, due: Any) -> None:
        """``what`` must be ``due``."""
        if found != due or type(found) is not type(due):
            self.broken(rule, f"{what} {brief(found)}", brief(due))


def brief(value: Any, width: int = 100) -> str:
    """JSON in ASCII, cut to ``width`` characters."""
    text = json.dumps(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"
