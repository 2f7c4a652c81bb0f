"""The extended state of the machine: the state, and the variables beside it.

The term is UML's. Handlers (``transitions``) read it, moves (``moves``) change it, and ``Response``
keeps it to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.states import State

if TYPE_CHECKING:
    from responsory.values import Logprob, Phase


class ExtendedState:
    """``seq``: number of the next event. ``item``: output index of the item opened last, ``part``:
    content index of the part opened last in it; each -1 before the first. ``phase``: of the open
    message. ``text``, ``logprobs`` and token ``ids``: what the open part or call has got so far;
    the text is in pieces, and those before them are in ``joined``. ``id``: the tail of the public
    ids. ``call_ids``: those that the family itself gave to calls."""

    __slots__ = (
        "call_ids",
        "id",
        "ids",
        "item",
        "joined",
        "logprobs",
        "part",
        "phase",
        "seq",
        "state",
        "text",
    )

    def __init__(self) -> None:
        self.state = State.NEW
        self.seq = 0
        self.item = -1
        self.part = -1
        self.phase: Phase | None = None
        self.joined: list[str] = []
        self.text: list[str] = []
        self.logprobs: list[Logprob] = []
        self.ids: list[int] = []
        self.id = ""
        self.call_ids: set[str] = set()

    def copy(self) -> ExtendedState:
        """An equal one that shares nothing that can change."""
        other = ExtendedState()
        other.state, other.seq, other.phase = self.state, self.seq, self.phase
        other.item, other.part = self.item, self.part
        other.joined, other.text = self.joined.copy(), self.text.copy()
        other.logprobs, other.ids = self.logprobs.copy(), self.ids.copy()
        other.id, other.call_ids = self.id, self.call_ids.copy()
        return other

    def join(self) -> None:
        """Make the pieces one: a long text then costs its length, not a string for each token."""
        self.joined.append("".join(self.text))
        self.text.clear()

    def whole_text(self) -> str:
        """All text of the open part or call so far."""
        return "".join(self.joined) + "".join(self.text)

    def view(self) -> tuple[object, ...]:
        """All of it, as one value to compare."""
        place = (self.id, self.state, self.seq, self.item, self.part, self.phase)
        sums = (self.whole_text(), tuple(self.logprobs), tuple(self.ids))
        return (*place, *sums, frozenset(self.call_ids))
