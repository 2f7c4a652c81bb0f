"""Token ids and counts in the machine: each delta keeps what it tells, and each sum is whole."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from responsory import Response
from responsory import events as ev
from responsory.commands import (
    CallInput,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Text,
)
from responsory.errors import LogError
from responsory.testing import a_response, check_log
from responsory.values import Logprob, Tokens, Usage

if TYPE_CHECKING:
    from responsory.testing.streams import Builder

USAGE = Usage(3, 9)
TOLD, MORE = Tokens((7, 8), 2), Tokens((9,), 3)
ENTRY = Logprob("a", -1.0, b"a")


def before() -> dict[str, Builder]:
    """A machine in each state in which text can come, with ids told in the open part."""
    return {
        "idle": a_response(),
        "idle-after-a-call": a_response().call("f", "{}"),
        "text": a_response().send(Text("t", (), None, MORE)),
        "refusal": a_response().send(Refusal("r", MORE)),
        "reasoning": a_response().send(Reasoning("r", MORE)),
        "call": a_response().send(CallOpened("function", "f")),
        "input": a_response().send(CallOpened("function", "f")).send(CallInput("{", MORE)),
    }


STATES = sorted(before())
COMMANDS: list[tuple[type[Any], type[ev.Event]]] = [
    (Text, ev.TextDelta), (Refusal, ev.RefusalDelta), (Reasoning, ev.ReasoningDelta),
    (CallInput, ev.InputDelta),
]  # fmt: skip


PLACES = [
    (state, kind, delta)
    for state in STATES
    for kind, delta in COMMANDS
    if kind is not CallInput or state in ("call", "input")
]
"""Where a command can come."""
ENDS: dict[str, Command] = {
    "length": Finish("length", USAGE), "fail": Fail("c", "m", USAGE), "cancel": Cancel(USAGE)
}  # fmt: skip


def saying(kind: type[Any], text: str, tokens: Any) -> Command:
    command: Command = kind(text, (), None, tokens) if kind is Text else kind(text, tokens)
    return command


@pytest.mark.parametrize("text", ["x", "é", ""])
@pytest.mark.parametrize(("state", "kind", "delta"), PLACES)
def test_a_delta_tells_what_its_command_told(
    state: str, kind: type[Any], delta: type[ev.Event], text: str
) -> None:
    made = before()[state]
    (event,) = [each for each in made.machine.decide(saying(kind, text, TOLD))
                if type(each) is delta]  # fmt: skip
    assert (event.text, event.tokens) == (text, TOLD)  # type: ignore[attr-defined]  # it is a delta
    plain = made.machine.decide(saying(kind, text, None))
    told = [each.tokens for each in plain if type(each) is delta]  # type: ignore[attr-defined]
    assert told == ([None] if text else [])


@pytest.mark.parametrize(("state", "kind", "_"), PLACES)
def test_a_count_alone_is_nothing(state: str, kind: type[Any], _: Any) -> None:
    made = before()[state]
    assert made.machine.decide(saying(kind, "", Tokens((), 5))) == []
    (*_, event) = made.machine.decide(saying(kind, "x", Tokens((), 5)))
    assert event.tokens == Tokens((), 5)  # type: ignore[attr-defined]  # it is a delta


@pytest.mark.parametrize("tokens", [(1,), [1], 5, "", {"ids": ()}, USAGE])
@pytest.mark.parametrize(("state", "kind", "_"), PLACES)
def test_what_tokens_cannot_be(state: str, kind: type[Any], _: Any, tokens: Any) -> None:
    machine = before()[state].machine
    view = machine.view()
    with pytest.raises(ValueError, match=r"^tokens must be a Tokens, not "):
        machine.receive(saying(kind, "x", tokens))
    assert machine.view() == view


@pytest.mark.parametrize(
    ("make", "done"),
    [
        (lambda text, tokens: Text(text, (), None, tokens), ev.TextDone),
        (Refusal, ev.RefusalDone),
        (Reasoning, ev.ReasoningDone),
        (CallInput, ev.InputDone),
    ],
)
@pytest.mark.parametrize("ending", [*ENDS, "next"])
def test_a_done_event_has_the_ids_of_its_deltas(make: Any, done: type[Any], ending: str) -> None:
    made = a_response()
    if done is ev.InputDone:
        made.send(CallOpened("function", "f"))
    made.send(make("a", TOLD)).send(make("b", None)).send(make("", MORE)).send(make("c", MORE))
    if ending == "next":
        made.send(CallOpened("function", "g")).finish()
    else:
        {"length": lambda: made.finish("length"), "fail": made.fail, "cancel": made.cancel}[
            ending
        ]()
    events = made.log[:]
    first = next(event for event in events if isinstance(event, done))
    assert (first.text, first.ids) == ("abc", (7, 8, 9, 9))
    others = [event for event in events if hasattr(event, "ids") and event is not first]
    assert [event.ids for event in others] == [()] * len(others)
    check_log(events)
    assert Response.replay(events).view() == made.machine.view()
    assert Response.replay(made.log.compact()).view() == made.machine.view()


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
@pytest.mark.parametrize("state", STATES)
def test_the_end_tells_the_ids_that_no_delta_told(state: str, reason: Any) -> None:
    made = before()[state]
    (*closing, end) = made.machine.decide(Finish(reason, USAGE, 5, None, (4, 5)))
    assert end.ids == (4, 5)  # type: ignore[attr-defined]  # it is an ending
    open_ids = () if state in ("idle", "idle-after-a-call", "call") else (9,)
    assert sum((getattr(event, "ids", ()) for event in closing), ()) == open_ids
    made.finish(reason, ids=(4, 5))
    assert Response.replay(made.log).view() == made.machine.view()


@pytest.mark.parametrize("ids", [[1], None, (True,), (-1,), ("1",)])
def test_what_ids_of_the_end_cannot_be(ids: Any) -> None:
    with pytest.raises(ValueError, match=r"^ids (cannot be|holds) "):
        Finish("stop", USAGE, None, None, ids)


def test_ids_of_a_branch_are_its_own() -> None:
    machine = before()["text"].machine
    other = copy.copy(machine)
    other.receive(Text("x", (), None, TOLD))
    (done, *_) = machine.receive(Finish("stop", USAGE))
    assert done.ids == (9,)  # type: ignore[attr-defined]  # it is a sum
    (done, *_) = other.receive(Finish("stop", USAGE))
    assert done.ids == (9, 7, 8)  # type: ignore[attr-defined]  # it is a sum


# --- a log that no machine can have written -----------------------------------------------------


TOLD_LOG = (
    a_response()
    .send(Reasoning("r", MORE))
    .send(Text("a", (ENTRY,), None, TOLD))
    .send(Refusal("n", MORE))
    .send(CallOpened("function", "f"))
    .send(CallInput("{}", TOLD))
    .finish(ids=(5,))
    .log
)


@pytest.mark.parametrize(
    "kind",
    [ev.TextDone, ev.RefusalDone, ev.ReasoningDone, ev.InputDone],
    ids=lambda kind: kind.kind,
)
def test_a_sum_that_is_none_is_refused(kind: type[ev.Event]) -> None:
    events: list[Any] = TOLD_LOG[:]
    (at,) = [index for index, event in enumerate(events) if type(event) is kind]
    events[at] = attrs.evolve(events[at], ids=(*events[at].ids, 1))
    with pytest.raises(LogError, match=f"^row {at + 2}: .* has another ids than is due"):
        Response.replay(events)


def test_a_text_tells_no_cuts_while_its_deltas_are_there() -> None:
    events: list[Any] = TOLD_LOG[:]
    (at,) = [index for index, event in enumerate(events) if type(event) is ev.TextDone]
    events[at] = attrs.evolve(events[at], cuts=((1, 1),))
    with pytest.raises(LogError, match=f"^row {at + 2}: .* has another cuts than is due"):
        Response.replay(events)


@pytest.mark.parametrize("what", range(4))
def test_a_delta_with_ids_alone_is_one(what: int) -> None:
    """A log of such deltas names the place of a fault as any other does."""
    kind, _ = COMMANDS[what]
    made = a_response()
    if kind is CallInput:
        made.send(CallOpened("function", "f"))
    made.send(saying(kind, "", TOLD))
    events: list[Any] = made.finish().log[:]
    (at,) = [index for index, event in enumerate(events) if getattr(event, "tokens", None)]
    assert Response.replay(events).view() == made.machine.view()
    events[at] = attrs.evolve(events[at], tokens=Tokens((), 2))
    with pytest.raises(LogError, match=f"^row {at + 2}: "):
        Response.replay(events)
