"""What every request body is: typed fields, and the names of what it brought besides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

MOST_NAMED = 20
"""Fields without effect that are kept by name: of a million the first say enough."""


@attrs.define(kw_only=True)
class Body:
    """The base of every body. ``structure`` fills the two lists, with paths as in ``tools[0].foo``.

    They are sorted, and hold the first ``MOST_NAMED`` paths of each kind.
    """

    refused: ClassVar[Mapping[str, str]] = {}
    """Parameters known elsewhere and not offered here, each with what to use instead, if any."""
    without_effect: ClassVar[frozenset[str]] = frozenset()
    """Paths that the API knows and that change nothing here: no unknown fields, yet listed."""

    ignored: list[str] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """Fields of this body that are known and have no effect."""
    unknown: list[str] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """Fields of this body that this server does not know."""
    unnamed: int = attrs.field(default=0, init=False, eq=False, repr=False)
    """How many more there are of both."""

    def keep_the_first(self) -> None:
        """Sort both lists, and count what is too much for them."""
        for names in (self.ignored, self.unknown):
            names.sort()
            self.unnamed += len(names[MOST_NAMED:])
            del names[MOST_NAMED:]
