"""What a newcomer gets wrong is told at once, in one sentence, and changes nothing."""

from __future__ import annotations

import math
import pickle
from copy import copy
from typing import Any

import pytest

from responsory import EventLog, IllegalTransition, LogError, Response, ResponsoryError, Usage
from responsory import events as ev
from responsory.commands import (
    RESERVED,
    Accept,
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
from responsory.errors import TableError
from responsory.projections import ResponsesStream, chat_body, completion_body, response_body
from responsory.projections.resource import Resource
from responsory.segments import Piece, Segmenter
from responsory.testing import a_response
from responsory.values import Logprob, TopLogprob


def test_an_echo_cannot_hold_what_is_the_responses_own() -> None:
    assert set(Resource().head()) == RESERVED
    with pytest.raises(ValueError, match=r"the response's own keys: output, status$"):
        Accept("t", 1, echo={"model": "m", "status": "queued", "output": []})
    for key in RESERVED:
        with pytest.raises(ValueError, match=key):
            Accept("t", 1, echo={key: None})


def test_a_log_with_such_an_echo_is_none() -> None:
    made = a_response().text("a").finish().log
    forged = ev.Created(0, "r1", 1764500000, False, {"model": "tiny", "id": "resp_other"})
    with pytest.raises(LogError, match="row 2: Created with seq 0 has another echo than is due"):
        Response.replay([forged, *made[1:]])


@pytest.mark.parametrize("stop", ["END", ["END"], ("END",)])
def test_one_stop_string_is_one(stop: Any) -> None:
    segmenter = Segmenter(stop=stop)
    assert segmenter.feed([Piece("The answer is Not END yet")]) == [Text("The answer is Not ")]
    assert segmenter.stop == "END"


def test_a_family_is_given_as_its_spec() -> None:
    with pytest.raises(TypeError, match="not a Spec: 'think'; FORMATS holds"):
        Segmenter("think")  # type: ignore[arg-type]  # the point of the test


def test_a_choice_that_is_none_is_named_with_the_choices() -> None:
    with pytest.raises(ValueError, match=r"^kind cannot be 'tool'; known: 'function', 'custom'$"):
        CallOpened("tool", "f")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match=r"^reason cannot be 'eos'; known: 'stop', 'length', "):
        Finish("eos", Usage(0, 0))  # type: ignore[arg-type]  # the point of the test


def test_bodies_say_what_they_want() -> None:
    log = a_response().text("a").finish().log
    for body in (chat_body, completion_body):
        with pytest.raises(TypeError, match="a log for each of its choices"):
            body(log)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(LogError, match="begin with Created"):
        response_body([log])  # type: ignore[list-item]  # the point of the test
    with pytest.raises(LogError, match="begin with Created"):
        response_body([])


def test_a_log_is_a_sequence_of_events() -> None:
    log = a_response().text("a").finish().log
    assert ResponsesStream().feed(0, log) == ResponsesStream().feed(0, log[:])
    assert log[2] in log
    assert log.index(log[2]) == 2
    assert [*reversed(log)] == log[::-1]
    assert response_body(log) == response_body(log[:])


def test_every_error_has_one_base() -> None:
    assert issubclass(IllegalTransition, ResponsoryError)
    assert issubclass(TableError, ResponsoryError)
    assert issubclass(LogError, ResponsoryError)


def test_errors_can_be_sent_to_another_process() -> None:
    with pytest.raises(IllegalTransition) as caught:
        Response().receive(Start())
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.state, again.command) == (
        str(caught.value),
        caught.value.state,
        Start(),
    )
    assert (again.allowed, again.status) == (caught.value.allowed, 500)
    error = pickle.loads(pickle.dumps(LogError("no", 7)))
    assert (str(error), error.row) == ("row 7: no", 7)


def test_events_and_commands_are_hashed_by_value() -> None:
    assert {Text("a"), Text("a"), Text("b")} == {Text("b"), Text("a")}
    log = a_response().text("a").finish().log
    assert len({*log[1:], *EventLog.from_rows(log.rows())[1:]}) == len(log) - 1


def test_a_machine_shows_where_it_is() -> None:
    machine = Response()
    machine.receive(Accept("t", 1))
    assert repr(machine) == repr(copy(machine)) == "<Response in state `idle`, next seq 2>"


# --- values that nobody could show or store -----------------------------------------------------

HALF = "\ud83d"
NO_TIME: Any = 1764500000.5
BAD: list[tuple[Any, str]] = [
    (lambda: Accept("", 1), "id cannot be empty"),
    (lambda: Accept(HALF, 1), "id holds half a surrogate pair"),
    (lambda: Accept(5, 1), "id cannot be 5"),  # type: ignore[arg-type]  # the point of the test
    (lambda: Accept("t", NO_TIME), "created_at cannot be 1764500000.5"),
    (lambda: Accept("t", 1, 1), "background cannot be 1"),  # type: ignore[arg-type]  # the point
    (lambda: Accept("t", 1, echo={"top_p": math.nan}), "echo holds nan, which is not JSON"),
    (lambda: Accept("t", 1, echo={"a": [HALF]}), "echo holds half a surrogate pair"),
    (lambda: Accept("t", 1, echo={"a": {1: 2}}), "echo cannot be 1"),  # type: ignore[dict-item]  # the point
    (lambda: Accept("t", 1, echo=deep(300)), "echo is nested more than 256 levels deep"),
    (lambda: CallOpened("function", ""), "name cannot be empty"),
    (lambda: CallOpened("function", None), "name cannot be None"),  # type: ignore[arg-type]  # the point
    (lambda: CallOpened("function", "f", HALF), "call_id holds half a surrogate pair"),
    (lambda: Finish("stop", None), "usage must be a Usage, not None"),  # type: ignore[arg-type]  # the point
    (lambda: Finish("stop", Usage(1, 1), NO_TIME), "completed_at cannot be 1764500000.5"),
    (lambda: Finish("stop", Usage(1, 1), None, -1), "stop cannot be -1"),
    (lambda: Finish("stop", Usage(1, 1), None, True), "stop cannot be True"),
    (lambda: Cancel(None), "usage must be a Usage, not None"),  # type: ignore[arg-type]  # the point
    (lambda: Fail(None, "m", Usage(1, 1)), "cannot be None"),  # type: ignore[arg-type]  # the point
    (lambda: Usage(-1, 1), "input_tokens cannot be -1"),
    (lambda: Usage(1, True), "output_tokens cannot be True"),
    (lambda: Usage(1, 1, 2**53), "cached_tokens cannot be 9007199254740992"),
]


def deep(levels: int) -> dict[str, Any]:
    return {"a": deep(levels - 1)} if levels else {}


@pytest.mark.parametrize(("make", "message"), BAD)
def test_a_command_cannot_be_made_of_what_it_cannot_carry(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


TOLD: list[Any] = [
    Text(HALF),
    Text("a" + HALF, (), "commentary"),
    Refusal(HALF),
    Reasoning(HALF),
    Text("a", [Logprob("a", -1.0, b"a")]),  # type: ignore[arg-type]  # the point of the test
    Text("a", 5),  # type: ignore[arg-type]  # the point of the test
    Text("a", (), "analysis"),  # type: ignore[arg-type]  # the point of the test
    Text(5),  # type: ignore[arg-type]  # the point of the test
    Reasoning(b"a"),  # type: ignore[arg-type]  # the point of the test
]
PLACES = {
    "idle": a_response(),
    "text": a_response().text("x"),
    "refusal": a_response().refusal("x"),
    "reasoning": a_response().reasoning("x"),
    "call": a_response().call("f", "x", closed=False),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", TOLD, ids=repr)
def test_what_cannot_be_shown_is_refused_before_anything_changes(command: Any, place: str) -> None:
    machine = copy(PLACES[place].machine)
    before = machine.view()
    with pytest.raises((ValueError, AttributeError)):
        machine.receive(command)
    assert machine.view() == before
    assert machine.receive(Finish("stop", Usage(1, 1)))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Text(HALF), r"^holds half a surrogate pair: '\\ud83d'$"),
        (Text("a", 5), "^logprobs must be a tuple, not 5$"),  # type: ignore[arg-type]  # the point
        (Text("a", (), "analysis"), "^no phase is 'analysis'$"),  # type: ignore[arg-type]  # the point
    ],
)
def test_the_refusal_says_what_it_was(command: Text, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        copy(PLACES["text"].machine).receive(command)


def test_half_a_surrogate_pair_in_a_call() -> None:
    machine = copy(PLACES["call"].machine)
    with pytest.raises(ValueError, match="half a surrogate pair"):
        machine.receive(CallInput(HALF))


def test_a_failure_is_told_whatever_it_says() -> None:
    """As the name of a file that is no UTF-8 comes in an OSError."""
    made = a_response().text("a").fail("no such file: \udcff\ud83d\ude00")
    (frame,) = [f for f in ResponsesStream().feed(0, made.log) if b"event: error" in f]
    assert "no such file: \ufffd😀" in frame.decode()
    assert EventLog.from_lines(made.log.lines()) == made.log


def test_an_echo_is_the_logs_own() -> None:
    settings: dict[str, Any] = {"model": "m", "metadata": {"k": "v"}, "tools": ({"a": 1},)}
    made = a_response(echo=settings).text("a").finish()
    settings["metadata"]["k"] = "changed"
    body = response_body(made.log)
    assert body["metadata"] == {"k": "v"}
    assert body["tools"] == [{"a": 1}]
    body["metadata"]["k"] = "changed"
    assert response_body(made.log)["metadata"] == {"k": "v"}
    assert EventLog.from_lines(made.log.lines()) == made.log


def test_a_call_id_that_is_ours_is_not_given_twice() -> None:
    made = a_response().call("f", call_id="call_r1_1").call("g").call("h", call_id="own").finish()
    calls = [item["call_id"] for item in response_body(made.log)["output"]]
    assert calls == ["call_r1_0", "call_r1_1", "own"]
    chat = a_response().call("f", call_id="call_r1_0_1").call("g").finish()
    message = chat_body([chat.log])["choices"][0]["message"]
    assert [call["id"] for call in message["tool_calls"]] == ["call_r1_0_0", "call_r1_0_1"]
    twice = a_response().call("f", call_id="x").call("g", call_id="x").call("h", call_id="")
    ids = [item["call_id"] for item in response_body(twice.log)["output"]]
    assert ids == ["x", "call_r1_1", "call_r1_2"]


@pytest.mark.parametrize("value", [-1, -1.0, float("nan"), float("inf"), -(10**400)])
def test_a_logprob_is_a_float_as_it_is_read_again(value: Any) -> None:
    made = a_response().tokens(Logprob("a", value, b"a", (TopLogprob("b", value, b"b"),))).finish()
    again = EventLog.from_lines(made.log.lines())
    assert again == made.log
    assert ResponsesStream().feed(0, again) == ResponsesStream().feed(0, made.log)
