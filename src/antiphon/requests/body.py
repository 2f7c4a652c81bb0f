"""What every request body is: typed fields, and the names of what it brought besides."""

from __future__ import annotations

from typing import ClassVar

import attrs


@attrs.define(kw_only=True)
class Body:
    """The base of every body. ``structure`` fills both lists; paths as in ``tools[0].foo``."""

    without_effect: ClassVar[frozenset[str]] = frozenset()
    """Paths that the API knows and that change nothing here: no unknown fields, yet listed."""

    ignored: list[str] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """Fields of this body that are known and have no effect."""
    unknown: list[str] = attrs.field(factory=list, init=False, eq=False, repr=False)
    """Fields of this body that this server does not know."""
