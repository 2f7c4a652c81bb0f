"""Tool calls in a run: looked for when tools were declared, and the end after a single one."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engines.port import Finish
from antiphon.runs.run import Run
from responsory.segments import family
from runs.scripted import Stage, body, chunks, stream, unary

FIRST = b'<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
SECOND = b'<tool_call>{"name": "g", "arguments": {}}</tool_call>'


def message(run: Run) -> dict[str, Any]:
    result: dict[str, Any] = body(run)["choices"][0]
    return result


def names(choice: dict[str, Any]) -> list[str]:
    return [call["function"]["name"] for call in choice["message"].get("tool_calls", ())]


def test_calls_are_looked_for_when_tools_were_declared() -> None:
    stage = Stage()
    run = stage.open(unary(), format=family("hermes"), calls=True)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, FIRST + SECOND, finish=Finish.STOP))
    choice = message(run)
    assert choice["finish_reason"] == "tool_calls"
    assert names(choice) == ["f", "g"]
    assert choice["message"]["content"] is None


def test_without_tools_markers_are_text() -> None:
    stage = Stage()
    run = stage.open(unary(), format=family("hermes"))
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, FIRST, finish=Finish.STOP))
    choice = message(run)
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == FIRST.decode()


@pytest.mark.parametrize("cut", [1, len(FIRST) - 1, len(FIRST), len(FIRST) + 3])
def test_a_single_call_ends_the_answer_and_the_engine_is_told(cut: int) -> None:
    stage = Stage()
    run = stage.open(stream(), format=family("hermes"), calls=True, parallel_calls=False)
    stage.accept(run)
    key = run.choices[0].key
    whole = FIRST + SECOND
    for piece in (whole[:cut], whole[cut:]):
        if not run.ended:
            stage.step(lambda frame, piece=piece: frame.row(key, piece))  # type: ignore[misc]  # bound early
    assert run.ended
    assert stage.engine.aborted == [key]
    choice = message(run)
    assert (names(choice), choice["finish_reason"]) == (["f"], "tool_calls")
    assert body(run)["usage"]["completion_tokens"] == len(FIRST)
    finishes = [part["finish_reason"] for chunk in chunks(run) for part in chunk["choices"]]
    assert [finish for finish in finishes if finish] == ["tool_calls"]


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.STOP])
def test_what_an_unfinished_header_is_depends_on_how_the_answer_ended(finish: Finish) -> None:
    stage = Stage()
    run = stage.open(unary(), format=family("hermes"), calls=True)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b'Hi <tool_call>{"na', finish=finish))
    choice = message(run)
    shown = "Hi <tool_call>" + '{"na' if finish is Finish.STOP else "Hi"
    assert choice["message"]["content"] == shown
