"""A log that is written without its deltas: what it is once it has ended, and what until then."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory import EventLog, Response, Usage
from responsory import events as ev
from responsory.commands import Accept, CallInput, CallOpened, Command, Finish, Reasoning, Text
from responsory.errors import CursorExpired, LogError
from responsory.projections import ResponsesStream, response_body, resume, tail
from responsory.testing import a_response
from responsory.testing.strategies import logs
from responsory.values import Logprob, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def groups_of(log: EventLog, lengths: list[int]) -> list[list[ev.Event]]:
    groups, at = [], 0
    for length in lengths:
        groups.append(log[at : at + length])
        at += length
    return groups


@given(logs())
def test_it_ends_as_what_compaction_leaves(made: tuple[EventLog, list[int]]) -> None:
    log, lengths = made
    written = EventLog(compacted=True)
    for group in groups_of(log, lengths):
        written.extend(group)
    assert written == log.compact() == written.compact()
    assert (written.terminal, written.compacted, written.seq) == (True, True, len(log))
    assert [*written.lines()] == [*log.compact().lines()]
    assert response_body(written) == response_body(log)
    assert Response.replay(written).view() == Response.replay(log).view()
    together, alone = EventLog(log[:], compacted=True), EventLog(compacted=True)
    for event in log:
        alone.extend([event])
    assert alone == together == written


@given(logs(), st.data())
def test_until_then_it_counts_what_it_drops(
    made: tuple[EventLog, list[int]], data: st.DataObject
) -> None:
    log, lengths = made
    now = sum(lengths[: data.draw(st.integers(0, len(lengths) - 1))])
    written = EventLog(compacted=True)
    for event in log[:now]:
        written.extend([event])
    assert (written.terminal, written.compacted, written.seq) == (False, True, now)
    kept = [event.seq for event in written]
    assert kept == [event.seq for event in log[:now] if type(event) not in ev.DELTAS]
    with pytest.raises(LogError, match=r"^a compacted log that has not ended$"):
        next(written.rows())
    with pytest.raises(LogError, match="has not ended cannot be compacted"):
        written.compact()
    with pytest.raises(LogError, match=f"seq {now + 1} where {now} is due"):
        written.extend([ev.InProgress(now + 1)])
    # A reader that comes back gets what it has not seen, or learns that it is gone.
    cursor = data.draw(st.none() | st.integers(0, now))
    unseen = log[0 if cursor is None else cursor + 1 : now]
    if any(type(event) in ev.DELTAS for event in unseen):
        with pytest.raises(CursorExpired):
            tail(written, cursor)
    else:
        assert [event.seq for event in tail(written, cursor)] == [event.seq for event in unseen]


def test_a_reader_that_is_level_goes_on() -> None:
    made = a_response().text("a", "b").finish()
    frames = ResponsesStream().feed(0, made.log[:])
    stream, log = ResponsesStream(), EventLog(made.log[:6], compacted=True)
    assert resume(stream, log, 5) == []
    assert stream.feed(0, made.log[6:]) == frames[6:]
    with pytest.raises(CursorExpired, match="after sequence number 4 were dropped"):
        resume(ResponsesStream(), log, 4)


def test_a_refused_group_is_not_counted_in_part() -> None:
    made = a_response().send(Text("a", (Logprob("x", -1.0, b"x"),))).text("b").finish().log
    log = EventLog(made[:5], compacted=True)
    for group in ([made[5], made[5]], [made[5], made[7]], [made[6]]):
        with pytest.raises(LogError):
            log.extend(group)
        assert (log.seq, log[:]) == (5, made[:4])
    log.extend(made[5:])
    assert log == made.compact()
    assert next(event.cuts for event in log if isinstance(event, ev.TextDone)) == ((1, 1), (1, 0))
    with pytest.raises(LogError, match="after the terminal event"):
        log.extend(made[5:6])


def test_an_open_part_has_no_text_in_it() -> None:
    made = a_response().text("ab")
    part = response_body(made.log)["output"][0]["content"][0]
    written = response_body(EventLog(made.log[:], compacted=True))["output"][0]["content"][0]
    assert (part["text"], written["text"]) == ("ab", "")


TOKENS = 4096


def plain() -> Iterator[Command]:
    return (Text(f" {at:03x}") for at in range(TOKENS))


def thoughts() -> Iterator[Command]:
    return (Reasoning(f" {at:03x}") for at in range(TOKENS))


def arguments() -> Iterator[Command]:
    yield CallOpened("function", "f")
    yield from (CallInput(f" {at:03x}") for at in range(TOKENS))


def told() -> Iterator[Command]:
    return (Text(f" {at:03x}", (), None, Tokens((at,), at + 1)) for at in range(TOKENS))


@pytest.mark.parametrize(
    ("commands", "most"), [(plain, 7), (thoughts, 7), (arguments, 7), (told, 50)]
)
def test_a_long_answer_costs_its_length(
    commands: Callable[[], Iterator[Command]], most: int
) -> None:
    """Bytes that each token of four characters costs the machine and its log while they run. Where
    ids are told they are kept, each a number and a reference."""
    machine, log = Response(), EventLog(compacted=True)
    log.extend(machine.receive(Accept("r1", 1)))
    tracemalloc.start()
    try:
        for command in commands():
            log.extend(machine.receive(command))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < most * TOKENS
    log.extend(machine.receive(Finish("stop", Usage(1, TOKENS), 2)))
    assert log.seq > TOKENS > 20 > len(log)
