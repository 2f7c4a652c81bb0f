"""The states: one flat row each, and each a place where a command can arrive.

The response's status, the kind of the open item and the type of the open part are read off the
row, so they cannot disagree. What lies between the events of one group (a message without a part, a
part that is done in an item that is not) is no state: a machine takes a group whole or not at all.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

Status: TypeAlias = Literal[
    "queued", "in_progress", "completed", "incomplete", "failed", "cancelled"
]


class State(Enum):
    """``status``: of the response, None before Accept. ``item``: what is open. ``part``: ditto."""

    NEW = ("new", None)
    QUEUED = ("queued", "queued")
    IDLE = ("idle", "in_progress")
    MESSAGE_TEXT = ("message.text", "in_progress", "message", "output_text")
    MESSAGE_REFUSAL = ("message.refusal", "in_progress", "message", "refusal")
    REASONING_TEXT = ("reasoning.text", "in_progress", "reasoning", "reasoning_text")
    CALL = ("call", "in_progress", "call")
    CALL_INPUT = ("call.input", "in_progress", "call")
    COMPLETED = ("completed", "completed")
    INCOMPLETE = ("incomplete", "incomplete")
    FAILED = ("failed", "failed")
    CANCELLED = ("cancelled", "cancelled")

    status: Status | None
    item: str | None
    part: str | None
    terminal: bool

    def __new__(
        cls,
        label: str,
        status: Status | None,
        item: str | None = None,
        part: str | None = None,
    ) -> State:
        self = object.__new__(cls)
        self._value_ = label
        self.status = status
        self.item = item
        self.part = part
        self.terminal = status not in (None, "queued", "in_progress")
        return self


MESSAGES = frozenset({State.MESSAGE_TEXT, State.MESSAGE_REFUSAL})
REASONINGS = frozenset({State.REASONING_TEXT})
CALLS = frozenset({State.CALL, State.CALL_INPUT})
OPEN = MESSAGES | REASONINGS | CALLS
"""An item is open."""
TERMINAL = frozenset(state for state in State if state.terminal)
EVERY = frozenset(State)
