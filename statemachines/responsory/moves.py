"""What each event does to the extended state: the only code that changes it.

One move per kind of event, whatever the state, because the order of events is not known here:
``transitions`` alone decides it, and nothing is moved but groups that it gave. So no next state is
said twice: an event that opens or ends something names the state that it leaves behind, and the
last such event of a group has the last word.
"""
# ruff: noqa: ARG001  # every move has the same two parameters

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from responsory import events as ev
from responsory.states import State

if TYPE_CHECKING:
    from responsory.extended import ExtendedState

Move: TypeAlias = Callable[["ExtendedState", Any], None]

PIECES = 64
"""How many are joined at a time."""

PART_STATE = {
    "output_text": State.MESSAGE_TEXT,
    "refusal": State.MESSAGE_REFUSAL,
    "reasoning_text": State.REASONING_TEXT,
}


def created(m: ExtendedState, event: ev.Created) -> None:
    m.id = event.id


def item_added(m: ExtendedState, event: ev.ItemAdded) -> None:
    m.item = event.item
    m.part = -1
    m.phase = event.phase
    # A message and a reasoning item are in a state of their own from their first part on.
    if event.type in ("function_call", "custom_tool_call"):
        m.state = State.CALL
        if event.call_id is not None:
            m.call_ids.add(event.call_id)


def part_added(m: ExtendedState, event: ev.PartAdded) -> None:
    m.part = event.part
    m.state = PART_STATE[event.type]


def text_delta(m: ExtendedState, event: ev.TextDelta) -> None:
    m.text.append(event.text)
    if len(m.text) == PIECES:
        m.join()
    if event.logprobs:
        m.logprobs.extend(event.logprobs)
    if event.tokens is not None:
        m.ids.extend(event.tokens.ids)


def delta(m: ExtendedState, event: ev.RefusalDelta | ev.ReasoningDelta | ev.InputDelta) -> None:
    m.text.append(event.text)
    if len(m.text) == PIECES:
        m.join()
    if event.tokens is not None:
        m.ids.extend(event.tokens.ids)


def input_delta(m: ExtendedState, event: ev.InputDelta) -> None:
    delta(m, event)
    m.state = State.CALL_INPUT


def done(
    m: ExtendedState, event: ev.TextDone | ev.RefusalDone | ev.ReasoningDone | ev.InputDone
) -> None:
    m.joined = []
    m.text = []
    m.logprobs = []
    m.ids = []


def item_done(m: ExtendedState, event: ev.ItemDone) -> None:
    m.part = -1
    m.phase = None
    m.state = State.IDLE


def nothing(m: ExtendedState, event: ev.PartDone | ev.Errored) -> None:
    """The event is told, but what follows it in its group makes the change."""


def to(state: State) -> Move:
    """A move that changes the state alone."""

    def move(m: ExtendedState, event: ev.Event) -> None:
        m.state = state

    return move


MOVES: Mapping[type[ev.Event], Move] = {
    ev.Created: created,
    ev.Queued: to(State.QUEUED),
    ev.InProgress: to(State.IDLE),
    ev.ItemAdded: item_added,
    ev.PartAdded: part_added,
    ev.TextDelta: text_delta,
    ev.TextDone: done,
    ev.RefusalDelta: delta,
    ev.RefusalDone: done,
    ev.ReasoningDelta: delta,
    ev.ReasoningDone: done,
    ev.PartDone: nothing,
    ev.InputDelta: input_delta,
    ev.InputDone: done,
    ev.ItemDone: item_done,
    ev.Completed: to(State.COMPLETED),
    ev.Incomplete: to(State.INCOMPLETE),
    ev.Errored: nothing,
    ev.Failed: to(State.FAILED),
    ev.Cancelled: to(State.CANCELLED),
}
