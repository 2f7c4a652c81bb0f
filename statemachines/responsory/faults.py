"""Where a log goes wrong, and how: the first event after which no log can go on.

Replay finds out that a group of events is none, from its end: the event that tells the command.
Here the group is read from its start. Every command is decided that can have given a group with
these payloads, and the one whose group goes along with the events for longest names the place. This
is slow, and done once, when a log is refused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, get_args

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
from responsory.errors import FIRST_ROW, LogError
from responsory.grammar import LONGEST
from responsory.rows import SHAPES, named
from responsory.values import Phase, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from responsory.extended import ExtendedState
    from responsory.table import Row

E = TypeVar("E", bound=ev.Event)

NONE = Usage(0, 0)


def fault(m: ExtendedState, handlers: Row[ExtendedState], events: Sequence[ev.Event]) -> LogError:
    """What is wrong with events whose first group no command gives in this state."""
    window = events[:LONGEST]
    groups = [*_groups(m, handlers, window)]
    common = max((_common(window, group) for group in groups), default=0)
    due = [group[common] for group in groups if common == _common(window, group) < len(group)]
    return LogError(_reason(m, window, common, due), FIRST_ROW + m.seq + common)


def _groups(
    m: ExtendedState, handlers: Row[ExtendedState], events: Sequence[ev.Event]
) -> Iterator[list[ev.Event]]:
    """The groups that begin as the events may do."""
    for make in _commands(events):
        try:
            command = make()
            if type(command) in handlers:
                yield handlers[type(command)](m, command)
        except ValueError:  # a payload that no command can carry
            continue


def _common(events: Sequence[ev.Event], group: Sequence[ev.Event]) -> int:
    """How many events they begin with together."""
    length = min(len(events), len(group))
    return next((at for at in range(length) if events[at] != group[at]), length)


def _commands(events: Sequence[ev.Event]) -> Iterator[Callable[[], Command]]:
    """How to make one command at least for every group that can begin as these events do.

    What they do not tell is made up: the events that are there end before it would be seen.
    """

    def first(kind: type[E], otherwise: E) -> E:
        return next((event for event in events if isinstance(event, kind)), otherwise)

    created = first(ev.Created, ev.Created(0, "?", 0, False, {}))
    yield partial(Accept, created.id, created.created_at, created.background, created.echo)
    yield partial(Accept, created.id, created.created_at, created.background)
    yield partial(Start)
    text = first(ev.TextDelta, ev.TextDelta(0, 0, 0, ""))
    for phase in (None, *get_args(Phase)):
        own = text.text if text.logprobs else _text(text)
        yield partial(Text, own, text.logprobs, phase, text.tokens)
    refusal = first(ev.RefusalDelta, ev.RefusalDelta(0, 0, 0, ""))
    yield partial(Refusal, _text(refusal), refusal.tokens)
    reasoning = first(ev.ReasoningDelta, ev.ReasoningDelta(0, 0, 0, ""))
    yield partial(Reasoning, _text(reasoning), reasoning.tokens)
    item = first(ev.ItemAdded, ev.ItemAdded(0, 0, "function_call"))
    name = item.name or "?"
    yield partial(CallOpened, "function", name, item.call_id)
    yield partial(CallOpened, "custom", name, item.call_id)
    given = first(ev.InputDelta, ev.InputDelta(0, 0, ""))
    yield partial(CallInput, _text(given), given.tokens)
    yield partial(CallClosed)
    whole = first(ev.Completed, ev.Completed(0, NONE))
    yield partial(Finish, "stop", whole.usage, whole.completed_at, whole.stop, whole.ids)
    cut = first(ev.Incomplete, ev.Incomplete(0, NONE, "max_output_tokens"))
    yield partial(Finish, "length", cut.usage, None, cut.stop, cut.ids)
    yield partial(Finish, "content_filter", cut.usage, None, cut.stop, cut.ids)
    failed = first(ev.Failed, ev.Failed(0, NONE, "", ""))
    told = first(ev.Errored, ev.Errored(0, failed.code, failed.message))
    yield partial(Fail, told.code, told.message, failed.usage)
    yield partial(Cancel, first(ev.Cancelled, ev.Cancelled(0, NONE)).usage)


def _text(delta: ev.TextDelta | ev.RefusalDelta | ev.ReasoningDelta | ev.InputDelta) -> str:
    """Its text, or one that is made up where it tells nothing: no command gives such a delta."""
    told = delta.tokens is not None and delta.tokens.ids
    return delta.text if told else delta.text or "?"


def _reason(
    m: ExtendedState, events: Sequence[ev.Event], common: int, due: Sequence[ev.Event]
) -> str:
    """``due``: what can come after the first ``common`` events, in the order of the commands."""
    kinds = " or ".join(dict.fromkeys(type(event).__name__ for event in due))
    seq = m.seq + common
    if common == len(events):
        return f"the log ends inside a group: {kinds} with seq {seq} is due"
    event = events[common]
    if not due:
        return f"{named(event)} after the end, in state `{m.state.value}`"
    alike = [_differences(event, other) for other in due if type(other) is type(event)]
    if alike:
        wrong = min(alike, key=_unlikeness)
        return f"{named(event)} has another {', '.join(wrong)} than is due"
    place = type(events[common - 1]).__name__ if common else f"in state `{m.state.value}`"
    return f"{named(event)} cannot follow {place}: {kinds} with seq {seq} is due"


def _differences(event: ev.Event, other: ev.Event) -> list[str]:
    names = SHAPES[type(event)].names
    return [name for name in names if getattr(event, name) != getattr(other, name)]


def _unlikeness(differences: list[str]) -> tuple[bool, int]:
    """What is added as another type is the last to compare with."""
    return "type" in differences, len(differences)
