"""Right uses of the library. mypy --strict and pyright in strict mode find nothing wrong here.

Checked, never run: ``checkers.py`` beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from responsory import EventLog, IllegalTransition, Logprob, Response, State, Usage
from responsory import events as ev
from responsory.commands import (
    Accept,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Text,
)
from responsory.events import Event
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
    resume,
    tail,
)
from responsory.segments import Piece, Segment, Segmenter
from responsory.states import OPEN, TERMINAL
from responsory.table import Table
from responsory.testing import a_response, check_log, fold_responses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Machine:
    """Any class can be the machine of a table."""

    seq = 0


class Fuller(Machine):
    """A handler of a machine takes those that have more, too."""


TABLE: Table[Machine] = Table()
FULLER: Table[Fuller] = Table()


@TABLE.on({State.IDLE}, Text)
def text(m: Machine, command: Text) -> list[Event]:
    return [ev.TextDelta(m.seq, 0, 0, command.text)]


@TABLE.on(OPEN, Reasoning)
@TABLE.on(TERMINAL, Reasoning)
def reasoning(m: Machine, command: Reasoning) -> list[Event]:
    return []


@FULLER.on(OPEN, Refusal)
def any_machine(m: Machine, command: Refusal) -> list[Event]:
    return []


@TABLE.on(OPEN | {State.IDLE}, Cancel)
def any_command(m: Machine, command: Command) -> list[Event]:
    """A handler of every command is one of each."""
    return []


TABLE.refuse(frozenset({State.NEW}), Text, Refusal, Reasoning)

# A registered handler is still the function that it was.
assert_type(text(Machine(), Text("a")), list[Event])


def commands(usage: Usage) -> Iterable[Command]:
    yield Accept("r1", 1764500000, echo={"model": "tiny", "tools": [{"type": "function"}]})
    yield Text("a", (Logprob("a", -0.5, b"a"),), "final_answer")
    yield CallOpened("custom", name="f", call_id=None)
    yield Finish("length", usage, stop=17)
    yield Fail(code="server_error", message="broken", usage=usage)


def life(machine: Response, usage: Usage) -> EventLog:
    log = EventLog()
    for command in commands(usage):
        try:
            events = machine.receive(command)
        except IllegalTransition as refused:
            assert_type(refused.state, State)
            assert_type(refused.allowed, tuple[str, ...])
            assert_type(refused.status, int)
            continue
        assert_type(events, list[Event])
        log.extend(events)
    assert_type(machine.decide(Cancel(usage)), list[Event])
    assert_type(machine.state, State)
    assert_type(machine.terminal, bool)
    return log


def reading(log: EventLog) -> str:
    assert_type(log[0], Event)
    assert_type(log[1:], list[Event])
    assert_type(EventLog.from_rows(log.rows()).compact(), EventLog)
    assert_type(Response.replay(log), Response)
    read: list[str] = []
    for event in log:
        # The class of an event tells its fields.
        if isinstance(event, ev.TextDelta | ev.RefusalDelta):
            read.append(event.text)
        elif isinstance(event, ev.Created):
            read.append(event.id)
        match event:
            case ev.Completed(usage=usage):
                assert_type(usage, Usage)
            case _:
                assert_type(event.seq, int)
    return "".join(read)


def frames(log: EventLog, choices: Sequence[EventLog]) -> list[bytes]:
    stream = ResponsesStream(profile="openresponses")
    assert_type(stream.feed(0, log), list[bytes])
    assert_type(stream.ended, bool)
    assert_type(ChatStream(choices=2, include_usage=True).feed(1, log[:]), list[bytes])
    assert_type(CompletionsStream(logprobs=True).feed(0, log[:]), list[bytes])
    assert_type(tail(log, 3), "Sequence[Event]")
    assert_type(response_body(log), dict[str, Any])
    assert_type(chat_body(choices), dict[str, Any])
    assert_type(completion_body(choices, per_prompt=2), dict[str, Any])
    return resume(ResponsesStream(), log, starting_after=3)


def segments(machine: Response) -> None:
    segmenter = Segmenter(stop=["END"])
    assert_type(segmenter.feed([Piece("Hi", (17,)), Piece(" there")]), list[Segment])
    for segment in (*segmenter.feed([Piece("Hi")]), *segmenter.finish()):
        machine.receive(segment)
    assert_type(segmenter.stop, str | None)


def testing() -> None:
    made = a_response("r2").text("a", "b").call("f", "{}").finish("stop")
    assert_type(made.log, EventLog)
    check_log(made.log[:])
    assert_type(fold_responses(ResponsesStream().feed(0, made.log[:])), dict[str, Any])
