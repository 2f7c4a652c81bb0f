"""What each event does to the machine, per state: the only code that changes it.

A move updates the machine's data and returns the next state. An event that a state does not list
cannot follow there, which makes this table the grammar of a log.
"""
# ruff: noqa: ARG001, ARG005  # every move has the same two parameters

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from responsory import events as ev
from responsory.states import State

if TYPE_CHECKING:
    from responsory.response import Response

Move: TypeAlias = Callable[["Response", Any], State]

ITEM_STATE = {
    "message": State.MESSAGE,
    "reasoning": State.REASONING,
    "function_call": State.CALL,
    "custom_tool_call": State.CALL,
}
PART_STATE = {
    "output_text": State.MESSAGE_TEXT,
    "refusal": State.MESSAGE_REFUSAL,
    "reasoning_text": State.REASONING_TEXT,
}


def created(m: Response, event: ev.Created) -> State:
    return State.QUEUED if event.background else State.IDLE


def item_added(m: Response, event: ev.ItemAdded) -> State:
    m.items += 1
    m.parts = 0
    m.phase = event.phase
    m.text = []
    return ITEM_STATE[event.type]


def part_added(m: Response, event: ev.PartAdded) -> State:
    m.parts += 1
    m.text = []
    m.logprobs = []
    return PART_STATE[event.type]


def text_delta(m: Response, event: ev.TextDelta) -> State:
    m.text.append(event.text)
    if event.logprobs:
        m.logprobs.extend(event.logprobs)
    return State.MESSAGE_TEXT


def refusal_delta(m: Response, event: ev.RefusalDelta) -> State:
    m.text.append(event.text)
    return State.MESSAGE_REFUSAL


def reasoning_delta(m: Response, event: ev.ReasoningDelta) -> State:
    m.text.append(event.text)
    return State.REASONING_TEXT


def input_delta(m: Response, event: ev.InputDelta) -> State:
    m.text.append(event.text)
    return State.CALL_INPUT


def text_done(m: Response, event: ev.TextDone) -> State:
    # A compacted log has no deltas, and a machine replayed from it must be equal.
    m.text = [event.text]
    m.logprobs = list(event.logprobs)
    return m.state


def done(m: Response, event: ev.RefusalDone | ev.ReasoningDone | ev.InputDone) -> State:
    m.text = [event.text]
    return m.state


def part_done(m: Response, event: ev.PartDone) -> State:
    m.text = []
    m.logprobs = []
    return State.REASONING if m.state is State.REASONING_TEXT else State.MESSAGE


def item_done(m: Response, event: ev.ItemDone) -> State:
    m.parts = 0
    m.phase = None
    m.text = []
    return State.IDLE


def to(state: State) -> Move:
    """A move that changes nothing but the state."""
    return lambda m, event: state


def same(m: Response, event: ev.Event) -> State:
    return m.state


ABORTS: dict[type[ev.Event], Move] = {
    ev.Errored: same,
    ev.Failed: to(State.FAILED),
    ev.Cancelled: to(State.CANCELLED),
}

MOVES: Mapping[State, dict[type[ev.Event], Move]] = {
    State.NEW: {ev.Created: created},
    State.QUEUED: {ev.Queued: same, ev.InProgress: to(State.IDLE), **ABORTS},
    State.IDLE: {
        ev.InProgress: same,
        ev.ItemAdded: item_added,
        ev.Completed: to(State.COMPLETED),
        ev.Incomplete: to(State.INCOMPLETE),
        **ABORTS,
    },
    State.MESSAGE: {ev.PartAdded: part_added, ev.ItemDone: item_done},
    State.MESSAGE_TEXT: {
        ev.TextDelta: text_delta,
        ev.TextDone: text_done,
        ev.PartDone: part_done,
    },
    State.MESSAGE_REFUSAL: {
        ev.RefusalDelta: refusal_delta,
        ev.RefusalDone: done,
        ev.PartDone: part_done,
    },
    State.REASONING: {ev.PartAdded: part_added, ev.ItemDone: item_done},
    State.REASONING_TEXT: {
        ev.ReasoningDelta: reasoning_delta,
        ev.ReasoningDone: done,
        ev.PartDone: part_done,
    },
    State.CALL: {ev.InputDelta: input_delta, ev.InputDone: done, ev.ItemDone: item_done},
    State.CALL_INPUT: {ev.InputDelta: input_delta, ev.InputDone: done, ev.ItemDone: item_done},
    **{state: {} for state in State if state.terminal},
}
