"""What a spec says about a model family: data, read by the segmenter.

Raw text is always in one mode. A mode says which command its text becomes and which markers end it;
a marker is never shown, and leads to the next mode.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from responsory.checks import one_of, valid
from responsory.commands import Reasoning, Text
from responsory.immutable import immutable

Channel: TypeAlias = type[Text] | type[Reasoning]
"""The command that plain text of a mode becomes."""


def _check_markers(_: object, __: object, markers: Mapping[str, str]) -> None:
    for marker in markers:
        if not marker or marker != marker.strip():
            raise ValueError(f"a marker neither is empty nor begins or ends in space: {marker!r}")
    for one, other in itertools.permutations(markers, 2):
        if one in other:
            raise ValueError(f"the marker {one!r} is inside the marker {other!r}")


def _any_of(markers: Mapping[str, str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, markers))) if markers else None


def derived(of: Callable[[Mode], Any]) -> Any:
    """A field that is computed from the others."""
    return attrs.field(init=False, eq=False, repr=False, default=attrs.Factory(of, takes_self=True))


@immutable
class Mode:
    """``channel``: what its text becomes. ``markers``: each marker that is known here, and the mode
    after it. ``then``: the mode that its first character begins, where markers are known only
    before any text.

    White space that touches a marker belongs to it. Raises ValueError for a marker inside another,
    since which of the two was meant could depend on where the text is cut.
    """

    channel: Channel = attrs.field(validator=valid(one_of(Text, Reasoning)))
    markers: Mapping[str, str] = attrs.field(factory=dict, validator=_check_markers)
    then: str | None = None
    pattern: re.Pattern[str] | None = derived(lambda mode: _any_of(mode.markers))
    """Finds the first marker; None where there are none."""
    starts: tuple[str, ...] = derived(lambda mode: tuple({m[:1] for m in mode.markers}))
    """The characters with which a marker begins."""
    longest: int = derived(lambda mode: max(map(len, mode.markers), default=0))
    """Characters of the longest marker."""


@immutable
class Spec:
    """``modes`` by name, ``start`` the first one. ``prefilled``: the prompt ended in a marker, so
    white space at the very start touches one.

    Raises ValueError for a mode that is named and not there, and for a `then` that leads back to
    itself.
    """

    modes: Mapping[str, Mode]
    start: str
    prefilled: bool = False

    def __attrs_post_init__(self) -> None:
        named = {self.start}
        for mode in self.modes.values():
            named.update(mode.markers.values())
            if mode.then is not None:
                named.add(mode.then)
        missing = sorted(named - set(self.modes))
        if missing:
            raise ValueError(f"no such mode: {', '.join(missing)}")
        for name in self.modes:
            if self._settles_in(name) is None:
                raise ValueError(f"`then` of the mode {name} never leads to a mode without one")

    def _settles_in(self, name: str) -> str | None:
        """The mode in which text that begins in mode ``name`` stays; None for a circle."""
        for _ in self.modes:
            after = self.modes[name].then
            if after is None:
                return name
            name = after
        return None
