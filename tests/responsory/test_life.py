"""A life told in full: every value of every event, from the values of the commands."""

from __future__ import annotations

import copy

import pytest

from responsory import Response
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
from responsory.errors import IllegalTransition
from responsory.testing import a_response, check_log
from responsory.values import Logprob, Phase, Usage

A, B, C, D, E = (Logprob(token, -1.0, token.encode()) for token in "abcde")
USAGE = Usage(5, 4, 3, 2, 1)
COMMENT: Phase = "commentary"
SAME: Phase = "".join(["comment", "ary"])  # type: ignore[assignment]  # equal, and another object

LIFE: list[tuple[Command, list[ev.Event]]] = [
    (
        Accept("t", 7, background=True, echo={"model": "m"}),
        [ev.Created(0, "t", 7, True, {"model": "m"}), ev.Queued(1)],
    ),
    (Start(), [ev.InProgress(2)]),
    (Text("", (), COMMENT), []),
    # A token inside a character: a logprob, and no text yet.
    (
        Text("", (A,), COMMENT),
        [
            ev.ItemAdded(3, 0, "message", COMMENT),
            ev.PartAdded(4, 0, 0, "output_text"),
            ev.TextDelta(5, 0, 0, "", (A,)),
        ],
    ),
    (Text("xy", (B,), SAME), [ev.TextDelta(6, 0, 0, "xy", (B,))]),
    (Text("", (C,), SAME), [ev.TextDelta(7, 0, 0, "", (C,))]),
    (
        Refusal("no"),
        [
            ev.TextDone(8, 0, 0, "xy", (A, B, C)),
            ev.PartDone(9, 0, 0),
            ev.PartAdded(10, 0, 1, "refusal"),
            ev.RefusalDelta(11, 0, 1, "no"),
        ],
    ),
    (Refusal("!"), [ev.RefusalDelta(12, 0, 1, "!")]),
    (
        Text("", (D,), SAME),
        [
            ev.RefusalDone(13, 0, 1, "no!"),
            ev.PartDone(14, 0, 1),
            ev.PartAdded(15, 0, 2, "output_text"),
            ev.TextDelta(16, 0, 2, "", (D,)),
        ],
    ),
    (
        Text("z", (E,), None),
        [
            ev.TextDone(17, 0, 2, "", (D,)),
            ev.PartDone(18, 0, 2),
            ev.ItemDone(19, 0, "completed"),
            ev.ItemAdded(20, 1, "message"),
            ev.PartAdded(21, 1, 0, "output_text"),
            ev.TextDelta(22, 1, 0, "z", (E,)),
        ],
    ),
    (
        Reasoning("so"),
        [
            ev.TextDone(23, 1, 0, "z", (E,)),
            ev.PartDone(24, 1, 0),
            ev.ItemDone(25, 1, "completed"),
            ev.ItemAdded(26, 2, "reasoning"),
            ev.PartAdded(27, 2, 0, "reasoning_text"),
            ev.ReasoningDelta(28, 2, 0, "so"),
        ],
    ),
    (Reasoning(" on"), [ev.ReasoningDelta(29, 2, 0, " on")]),
    (
        CallOpened("function", "f"),
        [
            ev.ReasoningDone(30, 2, 0, "so on"),
            ev.PartDone(31, 2, 0),
            ev.ItemDone(32, 2, "completed"),
            ev.ItemAdded(33, 3, "function_call", None, "f"),
        ],
    ),
    (CallInput("{"), [ev.InputDelta(34, 3, "{")]),
    (CallInput("}"), [ev.InputDelta(35, 3, "}")]),
    (CallClosed(), [ev.InputDone(36, 3, "{}"), ev.ItemDone(37, 3, "completed")]),
    (
        CallOpened("custom", "g", "id"),
        [ev.ItemAdded(38, 4, "custom_tool_call", None, "g", "id")],
    ),
    (
        Refusal("no"),
        [
            ev.InputDone(39, 4, ""),
            ev.ItemDone(40, 4, "completed"),
            ev.ItemAdded(41, 5, "message"),
            ev.PartAdded(42, 5, 0, "refusal"),
            ev.RefusalDelta(43, 5, 0, "no"),
        ],
    ),
]
CUT = [
    ev.RefusalDone(44, 5, 0, "no"),
    ev.PartDone(45, 5, 0),
    ev.ItemDone(46, 5, "incomplete"),
]
ENDINGS: list[tuple[Command, list[ev.Event]]] = [
    (
        Finish("stop", USAGE, 9, "END"),
        [
            *CUT[:2],
            ev.ItemDone(46, 5, "completed"),
            ev.Completed(47, USAGE, 9, "END"),
        ],
    ),
    (
        Finish("length", USAGE, 9, 7),
        [*CUT, ev.Incomplete(47, USAGE, "max_output_tokens", 7)],
    ),
    (
        Finish("content_filter", USAGE, 9, "END"),
        [*CUT, ev.Incomplete(47, USAGE, "content_filter", "END")],
    ),
    (
        Fail("code", "words", USAGE),
        [*CUT, ev.Errored(47, "code", "words"), ev.Failed(48, USAGE, "code", "words")],
    ),
    (Cancel(USAGE), [*CUT, ev.Cancelled(47, USAGE)]),
]


@pytest.fixture(scope="module")
def lived() -> Response:
    machine = Response()
    for command, group in LIFE:
        assert machine.receive(command) == group
    return machine


@pytest.mark.parametrize(("command", "group"), ENDINGS)
def test_every_value_arrives(lived: Response, command: Command, group: list[ev.Event]) -> None:
    machine = copy.copy(lived)
    assert machine.receive(command) == group
    log = [event for _, events in LIFE for event in events] + group
    assert Response.replay(log).view() == machine.view()
    check_log(log)


@pytest.mark.parametrize(
    ("command", "status", "end"),
    [
        (Finish("stop", USAGE, 9, "END"), "completed", ev.Completed(7, USAGE, 9, "END")),
        (Finish("length", USAGE), "incomplete", ev.Incomplete(7, USAGE, "max_output_tokens")),
        (
            Finish("content_filter", USAGE),
            "incomplete",
            ev.Incomplete(7, USAGE, "content_filter"),
        ),
    ],
)
def test_an_answer_of_no_tokens_is_an_empty_message(
    command: Finish, status: str, end: ev.Event
) -> None:
    machine = Response()
    machine.receive(Accept("t", 7))
    assert machine.receive(command) == [
        ev.ItemAdded(2, 0, "message"),
        ev.PartAdded(3, 0, 0, "output_text"),
        ev.TextDone(4, 0, 0, ""),
        ev.PartDone(5, 0, 0),
        ev.ItemDone(6, 0, status),  # type: ignore[arg-type]  # one of the two
        end,
    ]


def test_a_call_id_is_used_once() -> None:
    """An empty one is none; a second one of the same name, or one that could be derived for another
    call, is not taken over."""
    machine = Response()
    machine.receive(Accept("t", 7))
    given = ["a", "", "b", "a", "b", None, "call_t_9", "call_t_", "call_t", "_call_t_0", "call_u_0"]
    groups = [machine.receive(CallOpened("function", "f", call_id)) for call_id in given]
    added = [event for group in groups for event in group if isinstance(event, ev.ItemAdded)]
    assert [event.call_id for event in added] == [
        "a", None, "b", None, None, None, None, None, "call_t", "_call_t_0", "call_u_0",
    ]  # fmt: skip


def test_decide_refuses_as_receive_does() -> None:
    for machine, command in ((Response(), Start()), (Response(), Cancel(USAGE))):
        with pytest.raises(IllegalTransition) as decided:
            machine.decide(command)
        with pytest.raises(IllegalTransition) as received:
            machine.receive(command)
        assert str(decided.value) == str(received.value)
        assert decided.value.command is received.value.command is command
        assert decided.value.status == received.value.status


def test_a_delta_that_goes_on_is_replayed_without_a_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nearly every event of a log is one."""
    builder = a_response().reasoning(*"abcd").text(*"abcd").refusal(*"abcd").call("f", *"abcd")
    builder.finish()
    decided: list[str] = []

    def due(machine: Response, facts: list[ev.Event], at: int) -> list[ev.Event]:
        decided.append(type(facts[at]).__name__)
        return real(machine, facts, at)

    real = Response._due
    monkeypatch.setattr(Response, "_due", due)
    assert Response.replay(builder.log).view() == builder.machine.view()
    assert decided == [
        "Created", "ItemAdded", "ReasoningDone", "TextDone", "RefusalDone", "InputDelta",
        "InputDone", "Completed",
    ]  # fmt: skip
