"""Where a text with log probabilities was cut into deltas.

A token begins in the delta that its entry came with. While the entries spell the text, that says
nothing new. Where they do not (an engine that gives entries for some tokens alone, a token of which
a marker took a part), it says where they stand, and is kept when deltas are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.events import TextDelta, TextDone

Cuts: TypeAlias = tuple[tuple[int, int], ...]
"""(characters, entries) of each delta, in order; deltas without entries in a row are one."""


def cuts(done: TextDone, deltas: Iterable[TextDelta]) -> Cuts:
    """Of a part that ended with ``done``. Empty where its entries spell it, or came all at once."""
    if not done.logprobs:
        return ()
    spelled = b"".join([entry.data for entry in done.logprobs])
    if spelled.startswith(done.text.encode()):
        return ()
    found: list[tuple[int, int]] = []
    for delta in deltas:
        length, count = len(delta.text), len(delta.logprobs)
        if found and not count and not found[-1][1]:
            length += found.pop()[0]
        found.append((length, count))
    return tuple(found) if len(found) > 1 else ()
