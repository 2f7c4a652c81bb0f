"""The words of errors: what is refused, where, and what would have been taken."""

from __future__ import annotations

import pickle

import pytest

from responsory import IllegalTransition, Response, State
from responsory.commands import Start
from responsory.errors import CursorExpired, LogError, shown


def test_a_state_that_takes_nothing_says_so() -> None:
    error = IllegalTransition(State.NEW, Start(), (), 500)
    assert str(error) == "Start is not allowed in state `new`; allowed: nothing"
    error = IllegalTransition(State.NEW, Start(), ("Accept", "Cancel"), 500)
    assert str(error) == "Start is not allowed in state `new`; allowed: Accept, Cancel"


def test_what_is_no_command_is_named() -> None:
    with pytest.raises(TypeError) as caught:
        Response().receive("Accept")  # type: ignore[arg-type]  # the point of the test
    assert str(caught.value) == "not a command: 'Accept'"


@pytest.mark.parametrize("kind", [LogError, CursorExpired])
def test_an_error_of_a_log_says_its_row_if_it_has_one(kind: type[LogError]) -> None:
    error = kind("seq 3 where 2 is due", 4)
    assert str(error) == "row 4: seq 3 where 2 is due"
    assert error.args == (error.reason,) == ("seq 3 where 2 is due",)
    assert str(kind("no header of a log")) == "no header of a log"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.row) == (kind, str(error), 4)


def test_a_value_in_a_message_is_short() -> None:
    assert shown({"a": [1, "b"]}) == "{'a': [1, 'b']}"
    assert shown("x" * 1000) == f"'{'x' * 12}...{'x' * 13}'"
    assert shown(10**5000) == "a huge int"
