"""The grammar of a log: a log is what some word of commands gives, and nothing else is.

There is no second table. Each group of events shows the one command that can have given it; the
machine decides that command again, and the log is right if it holds exactly what was decided:
kinds, order, indexes, sums and all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from responsory import events as ev
from responsory.commands import (
    Accept,
    CallClosed,
    CallInput,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Start,
    Text,
)
from responsory.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from responsory.extended import ExtendedState
    from responsory.values import Phase

LONGEST = 6
"""Events in the longest group: three that close an item, three that open the next."""

CALL_KIND: dict[str, Literal["function", "custom"]] = {
    "function_call": "function",
    "custom_tool_call": "custom",
}


def cause(events: list[ev.Event], at: int, phase: Phase | None) -> Command | None:
    """The only command that can have given a group that begins with ``events[at]``.

    ``phase`` is that of the open message. None when no command can, or when the events end inside
    the group. The command need not be legal, and may give other events: the caller decides it.
    """
    for place, event in enumerate(events[at : at + LONGEST]):
        command = CAUSES.get(type(event))
        if command is not None:
            return command(event, phase)
        if isinstance(event, ev.ItemAdded):
            if event.type in CALL_KIND and event.name is not None:
                return CallOpened(CALL_KIND[event.type], event.name, event.call_id)
            phase = event.phase
        elif isinstance(event, ev.ItemDone) and place == 1 and event.status == "completed":
            # The second event of its group, so it closes a call. Whatever follows, the log would
            # be the same if the call had been closed by a command of its own.
            return CallClosed()
    return None


def _created(event: ev.Created, _: Phase | None) -> Command:
    return Accept(event.id, event.created_at, event.background, event.echo)


def _incomplete(event: ev.Incomplete, _: Phase | None) -> Command:
    reason: Literal["length", "content_filter"] = "content_filter"
    if event.reason == "max_output_tokens":
        reason = "length"
    return Finish(reason, event.usage, None, event.stop, event.ids)


CAUSES: Mapping[type[ev.Event], Callable[[Any, Phase | None], Command]] = {
    ev.Created: _created,
    ev.InProgress: lambda *_: Start(),
    ev.TextDelta: lambda event, phase: Text(event.text, event.logprobs, phase, event.tokens),
    ev.RefusalDelta: lambda event, _: Refusal(event.text, event.tokens),
    ev.ReasoningDelta: lambda event, _: Reasoning(event.text, event.tokens),
    ev.InputDelta: lambda event, _: CallInput(event.text, event.tokens),
    ev.Completed: lambda event, _: Finish(
        "stop", event.usage, event.completed_at, event.stop, event.ids
    ),
    ev.Incomplete: _incomplete,
    ev.Failed: lambda event, _: Fail(event.code, event.message, event.usage),
    ev.Cancelled: lambda event, _: Cancel(event.usage),
}
"""The command of a group by the event that tells it: the first of these in the group."""


OPEN_FOR: Mapping[type[ev.Event], State] = {
    ev.TextDelta: State.MESSAGE_TEXT,
    ev.RefusalDelta: State.MESSAGE_REFUSAL,
    ev.ReasoningDelta: State.REASONING_TEXT,
    ev.InputDelta: State.CALL_INPUT,
}


def goes_on(m: ExtendedState, event: Any) -> bool:
    """Whether the event is the whole group of one more delta of the open part or call.

    Nearly every event of a log is, and there is nothing to decide about it.
    """
    # The first line tells a delta, which the type checker does not see; a call has no part.
    return (
        OPEN_FOR.get(type(event)) is m.state
        and event.seq == m.seq
        and event.item == m.item
        and (m.part < 0 or event.part == m.part)
        and event.text != ""
    )
