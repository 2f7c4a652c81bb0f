"""What each command gives in each state: the whole table, and the only place that decides.

A handler is pure: it reads the machine and returns the events of one atomic group. Sequence numbers
go on from ``m.seq``. The *close cascade* is the Done event of the open part, PartDone (calls
have no part), ItemDone, always in this order.

Text commands that carry nothing, neither text nor logprobs nor token ids, give no event: an empty
delta is never sent.
"""
# ruff: noqa: ARG001  # every handler has the same two parameters

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from responsory import events as ev
from responsory import ids
from responsory.commands import (
    Accept,
    CallClosed,
    CallInput,
    CallOpened,
    Cancel,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Start,
    Text,
)
from responsory.events import TextDelta
from responsory.payloads import check, tells
from responsory.states import CALLS, EVERY, MESSAGES, OPEN, REASONINGS, TERMINAL, State
from responsory.table import Table
from responsory.values import Phase

if TYPE_CHECKING:
    from responsory.events import Event
    from responsory.extended import ExtendedState
    from responsory.values import ItemStatus, ItemType

TABLE: Table[ExtendedState] = Table()
on = TABLE.on
refuse = TABLE.refuse

NEW, QUEUED, IDLE = frozenset({State.NEW}), frozenset({State.QUEUED}), frozenset({State.IDLE})
RUNNING = IDLE | OPEN
IN_TEXT = frozenset({State.MESSAGE_TEXT})
IN_REFUSAL = frozenset({State.MESSAGE_REFUSAL})

PHASES = (None, *get_args(Phase))
CALL_TYPE: dict[str, ItemType] = {"function": "function_call", "custom": "custom_tool_call"}


def _close_part(m: ExtendedState) -> list[Event]:
    """The end of the open part, or of the open call's input."""
    seq, item, part, text, token_ids = m.seq, m.item, m.part, m.whole_text(), tuple(m.ids)
    if m.state is State.MESSAGE_TEXT:
        return [
            ev.TextDone(seq, item, part, text, tuple(m.logprobs), token_ids),
            ev.PartDone(seq + 1, item, part),
        ]
    if m.state is State.MESSAGE_REFUSAL:
        return [ev.RefusalDone(seq, item, part, text, token_ids), ev.PartDone(seq + 1, item, part)]
    if m.state is State.REASONING_TEXT:
        return [
            ev.ReasoningDone(seq, item, part, text, token_ids),
            ev.PartDone(seq + 1, item, part),
        ]
    return [ev.InputDone(seq, item, text, token_ids)]


def _close(m: ExtendedState, status: ItemStatus) -> list[Event]:
    """The close cascade; nothing when no item is open."""
    if m.state not in OPEN:
        return []
    group = _close_part(m)
    return [*group, ev.ItemDone(m.seq + len(group), m.item, status)]


def _next_part(m: ExtendedState, command: Text | Refusal) -> list[Event]:
    """Close the open part; open the next one of the same item with its first delta."""
    group = _close_part(m)
    return _part(group, m.seq + len(group), m.item, m.part + 1, command)


def _next_item(
    m: ExtendedState, command: Text | Refusal | Reasoning, phase: Phase | None
) -> list[Event]:
    """Close the open item, if any; open the next one with its first part and delta."""
    group = _close(m, "completed")
    seq = m.seq + len(group)
    kind: ItemType = "reasoning" if type(command) is Reasoning else "message"
    group.append(ev.ItemAdded(seq, m.item + 1, kind, phase))
    return _part(group, seq + 1, m.item + 1, 0, command)


def _part(
    group: list[Event], seq: int, item: int, part: int, command: Text | Refusal | Reasoning
) -> list[Event]:
    """Append PartAdded and the first delta to ``group``."""
    text, tokens = command.text, command.tokens
    if isinstance(command, Text):
        group.append(ev.PartAdded(seq, item, part, "output_text"))
        group.append(ev.TextDelta(seq + 1, item, part, text, command.logprobs, tokens))
    elif isinstance(command, Refusal):
        group.append(ev.PartAdded(seq, item, part, "refusal"))
        group.append(ev.RefusalDelta(seq + 1, item, part, text, tokens))
    else:
        group.append(ev.PartAdded(seq, item, part, "reasoning_text"))
        group.append(ev.ReasoningDelta(seq + 1, item, part, text, tokens))
    return group


def _empty_message(m: ExtendedState, status: ItemStatus) -> list[Event]:
    """An answer of no tokens is one message with one empty part, so that output[0] exists."""
    seq, item = m.seq, m.item + 1
    return [
        ev.ItemAdded(seq, item, "message"),
        ev.PartAdded(seq + 1, item, 0, "output_text"),
        ev.TextDone(seq + 2, item, 0, ""),
        ev.PartDone(seq + 3, item, 0),
        ev.ItemDone(seq + 4, item, status),
    ]


# --- acceptance ---------------------------------------------------------------------------------


@on(NEW, Accept)
def accept(m: ExtendedState, command: Accept) -> list[Event]:
    created = ev.Created(m.seq, command.id, command.created_at, command.background, command.echo)
    return [created, ev.Queued(m.seq + 1) if command.background else ev.InProgress(m.seq + 1)]


@on(QUEUED, Start)
def start(m: ExtendedState, command: Start) -> list[Event]:
    return [ev.InProgress(m.seq)]


refuse(EVERY - NEW, Accept)
refuse(EVERY - QUEUED, Start)


# --- text, refusal, reasoning -------------------------------------------------------------------


@on(IN_TEXT, Text)
def text_goes_on(m: ExtendedState, command: Text) -> list[Event]:
    phase, text = command.phase, command.text
    if phase is not m.phase and phase != m.phase:  # the first test is the cheap one
        return text_opens_message(m, command)
    logprobs, tokens = command.logprobs, command.tokens
    if logprobs or tokens is not None or not text.isascii():
        check(command)
    if not text and not tells(command):
        return []
    return [TextDelta(m.seq, m.item, m.part, text, logprobs, tokens)]


@on(IN_REFUSAL, Text)
def text_opens_part(m: ExtendedState, command: Text) -> list[Event]:
    if command.phase != m.phase:
        return text_opens_message(m, command)
    check(command)
    return _next_part(m, command) if tells(command) else []


@on(RUNNING - MESSAGES, Text)
def text_opens_message(m: ExtendedState, command: Text) -> list[Event]:
    check(command)
    if command.phase not in PHASES:
        raise ValueError(f"no phase is {command.phase!r}")
    return _next_item(m, command, command.phase) if tells(command) else []


@on(IN_REFUSAL, Refusal)
def refusal_goes_on(m: ExtendedState, command: Refusal) -> list[Event]:
    check(command)
    if not tells(command):
        return []
    return [ev.RefusalDelta(m.seq, m.item, m.part, command.text, command.tokens)]


@on(IN_TEXT, Refusal)
def refusal_opens_part(m: ExtendedState, command: Refusal) -> list[Event]:
    check(command)
    return _next_part(m, command) if tells(command) else []


@on(RUNNING - MESSAGES, Refusal)
def refusal_opens_message(m: ExtendedState, command: Refusal) -> list[Event]:
    check(command)
    return _next_item(m, command, None) if tells(command) else []


@on(REASONINGS, Reasoning)
def reasoning_goes_on(m: ExtendedState, command: Reasoning) -> list[Event]:
    check(command)
    if not tells(command):
        return []
    return [ev.ReasoningDelta(m.seq, m.item, m.part, command.text, command.tokens)]


@on(RUNNING - REASONINGS, Reasoning)
def reasoning_opens_item(m: ExtendedState, command: Reasoning) -> list[Event]:
    check(command)
    return _next_item(m, command, None) if tells(command) else []


refuse(EVERY - RUNNING, Text, Refusal, Reasoning)


# --- calls --------------------------------------------------------------------------------------


@on(RUNNING, CallOpened)
def call_opens(m: ExtendedState, command: CallOpened) -> list[Event]:
    group = _close(m, "completed")
    seq, kind = m.seq + len(group), CALL_TYPE[command.kind]
    # A model may write one id twice, or one that we derive: such a call gets the derived one.
    call_id = command.call_id
    if not call_id or call_id in m.call_ids or ids.is_derived(call_id, m.id):
        call_id = None
    return [*group, ev.ItemAdded(seq, m.item + 1, kind, None, command.name, call_id)]


@on(CALLS, CallInput)
def call_input(m: ExtendedState, command: CallInput) -> list[Event]:
    check(command)
    if not tells(command):
        return []
    return [ev.InputDelta(m.seq, m.item, command.text, command.tokens)]


@on(CALLS, CallClosed)
def call_closes(m: ExtendedState, command: CallClosed) -> list[Event]:
    return _close(m, "completed")


refuse(EVERY - RUNNING, CallOpened)
refuse(EVERY - CALLS, CallInput, CallClosed)


# --- endings ------------------------------------------------------------------------------------


@on(RUNNING, Finish)
def finish(m: ExtendedState, command: Finish) -> list[Event]:
    status: ItemStatus = "completed" if command.reason == "stop" else "incomplete"
    group = _close(m, status) if m.item >= 0 else _empty_message(m, status)
    seq, usage, stop, rest = m.seq + len(group), command.usage, command.stop, command.ids
    if command.reason == "stop":
        return [*group, ev.Completed(seq, usage, command.completed_at, stop, rest)]
    if command.reason == "length":
        return [*group, ev.Incomplete(seq, usage, "max_output_tokens", stop, rest)]
    return [*group, ev.Incomplete(seq, usage, "content_filter", stop, rest)]


@on(QUEUED | RUNNING, Fail)
def fail(m: ExtendedState, command: Fail) -> list[Event]:
    group = _close(m, "incomplete")
    seq = m.seq + len(group)
    return [
        *group,
        ev.Errored(seq, command.code, command.message),
        ev.Failed(seq + 1, command.usage, command.code, command.message),
    ]


@on(QUEUED | RUNNING, Cancel)
def cancel(m: ExtendedState, command: Cancel) -> list[Event]:
    group = _close(m, "incomplete")
    return [*group, ev.Cancelled(m.seq + len(group), command.usage)]


@on(TERMINAL, Cancel)
def cancel_too_late(m: ExtendedState, command: Cancel) -> list[Event]:
    """A second cancel, or one that lost the race against the end, changes nothing."""
    return []


refuse(EVERY - RUNNING, Finish)
refuse(EVERY - QUEUED - RUNNING, Fail)
refuse(NEW, Cancel)

ROWS = TABLE.rows()
