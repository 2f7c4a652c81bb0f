"""What goes wrong: refusals, engine errors, faults of ours. Every run ends, and only that run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import attrs
import pytest

from antiphon.engines.port import Capability, EngineError, Finish, StepFrame, TokenSpelling
from antiphon.errors import AnswerFailed, AntiphonError, EngineFailed, Unavailable
from antiphon.requests.structured import Constraint
from antiphon.runs.answers import Answer, responses_answer
from antiphon.runs.choice import Choice
from antiphon.runs.plan import Sampling
from antiphon.runs.run import Run
from antiphon.runs.subscribers import Subscription
from responsory.events import Event
from runs.scripted import Stage, chunks, content, stream, unary

STOP = Finish.STOP


@pytest.mark.wire("F10")
@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("context_length_exceeded", 400, "context_length_exceeded"),
        ("grammar_invalid", 400, "invalid_schema"),
        ("unsupported", 400, "unsupported_parameter"),
        ("engine_overloaded", 503, "overloaded"),
        ("engine_failed", 500, "server_error"),
        ("anything else", 500, "server_error"),
    ],
)
async def test_a_refusal_before_the_accept_row_is_an_http_error(
    code: str, status: int, told: str
) -> None:
    stage = Stage()
    run = stage.open()
    error = EngineError(code=code, message="m")
    stage.step(lambda frame: frame.row(run.choices[0].key, finish=Finish.ERROR, error=error))
    with pytest.raises(AntiphonError) as caught:
        await run.opened()
    assert (caught.value.status, caught.value.code) == (status, told)
    assert run.frames == []
    assert not stage.fanout.has_tail("r1")


@pytest.mark.wire("S1")
async def test_one_refused_sibling_refuses_the_call_and_aborts_the_others() -> None:
    stage = Stage()
    run = stage.open(stream(2), n=2)
    first, second = (choice.key for choice in run.choices)
    error = EngineError(code="engine_overloaded", message="full")
    stage.step(lambda frame: frame.row(first))
    stage.step(lambda frame: frame.row(second, finish=Finish.ERROR, error=error))
    with pytest.raises(Unavailable):
        await run.opened()
    assert first in stage.engine.aborted
    assert stage.fanout.running == 0


async def test_an_engine_error_after_the_head_ends_the_stream_with_one_error_chunk() -> None:
    stage = Stage()
    run = stage.open(stream(2), n=2)
    stage.accept(run)
    first, second = (choice.key for choice in run.choices)
    stage.step(lambda frame: frame.row(first, b"a"))
    secret = EngineError(code="engine_failed", message="secret detail")
    stage.step(lambda frame: frame.row(first, finish=Finish.ERROR, error=secret))
    errors = [chunk for chunk in chunks(run) if "error" in chunk]
    assert len(errors) == 1
    assert errors[0]["error"]["code"] == "server_error"
    assert b"secret" not in b"".join(run.frames)
    assert second in stage.engine.aborted
    assert all(choice.ended for choice in run.choices)
    with pytest.raises(EngineFailed):
        await run.finished()


async def test_a_fault_of_ours_fails_that_run_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    broken, healthy = stage.open(), stage.open(tail="r2")
    stage.accept(broken)
    stage.accept(healthy)
    bad = [TokenSpelling(text="x", data=b"x", logprob=0.0)] * 3  # not one per token

    def rows(frame: Any) -> None:
        frame.row(broken.choices[0].key, b"a", spelling=bad)
        frame.row(healthy.choices[0].key, b"b", finish=STOP)

    stage.step(rows)
    assert "error" in chunks(broken)[-1]
    assert content(healthy) == "b"
    assert "failed in step" in caplog.text


async def test_the_death_of_the_engine_leaves_no_run_open() -> None:
    stage = Stage()
    run, waiting = stage.open(), stage.open(tail="r2")
    stage.accept(run)
    await stage.fanout.consume()  # the script is empty: the frames end
    assert "error" in chunks(run)[-1]
    with pytest.raises(Unavailable) as refused:
        await waiting.opened()
    assert refused.value.code == "engine_unavailable"
    with pytest.raises(Unavailable) as caught:
        stage.open(tail="r3")
    assert caught.value.code == "engine_unavailable"


async def test_frames_that_end_in_an_error_are_the_death_of_the_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def frames() -> AsyncIterator[StepFrame]:
        for frame in stage.engine.script:
            yield frame
        raise ZeroDivisionError("engine")

    stage = Stage()
    run = stage.open()
    stage.accept(run)
    monkeypatch.setattr(stage.engine, "frames", frames)
    await stage.fanout.consume()
    assert stage.fanout.engine_gone
    assert "error" in chunks(run)[-1]
    assert "ended in an error" in caplog.text


async def test_an_abort_by_a_server_that_stops_says_so() -> None:
    stage = Stage()
    run = stage.open(unary())
    stage.accept(run)
    async with anyio.create_task_group() as tasks:

        async def stop(grace_s: float) -> None:
            stage.step(lambda frame: frame.row(run.choices[0].key, finish=Finish.ABORT))
            tasks.start_soon(stage.fanout.consume)

        setattr(stage.engine, "stop", stop)  # noqa: B010  # what an engine does last
        await stage.fanout.drain(0)
    with pytest.raises(Unavailable) as caught:
        await run.finished()
    assert caught.value.code == "shutting_down"


async def test_an_abort_that_nobody_asked_for_is_the_engines_failure() -> None:
    stage = Stage()
    run = stage.open(unary())
    stage.accept(run)
    stage.step(lambda frame: frame.row(run.choices[0].key, finish=Finish.ABORT))
    with pytest.raises(EngineFailed):
        await run.finished()


@pytest.mark.parametrize("finish", [Finish.ABORT, Finish.ERROR])
def test_tokens_that_came_with_the_failure_are_part_of_the_answer(finish: Finish) -> None:
    stage = Stage()
    run = stage.open(responses_answer(stream=True), echo={"model": "m"})
    stage.accept(run)
    key = run.choices[0].key
    error = EngineError(code="engine_failed", message="m") if finish is Finish.ERROR else None
    stage.step(lambda frame: frame.row(key, b"Hi"))
    stage.step(lambda frame: frame.row(key, b" you", finish=finish, error=error))
    assert run.frames[-1] == b"data: [DONE]\n\n"
    failed = json.loads(run.frames[-2].split(b"data: ", 1)[1])["response"]
    assert failed["status"] == "failed"
    assert failed["output"][0]["content"][0]["text"] == "Hi you"
    assert failed["usage"]["output_tokens"] == len("Hi you")


class Breaks:
    """A projection that works for ``good`` feeds and then raises, whatever it is fed."""

    def __init__(self, good: int) -> None:
        self._good = good
        self.ended = False

    def feed(self, choice: int, events: Sequence[Event]) -> list[bytes]:
        self._good -= 1
        if self._good < 0:
            raise ZeroDivisionError("projection")
        return [b"data: {}\n\n"]


@pytest.mark.parametrize("named", [False, True])
async def test_a_broken_projection_ends_its_stream_by_hand_and_harms_nobody(
    named: bool, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    broken = stage.open(Answer(Breaks(1), lambda logs: {}, named_events=named))
    healthy = stage.open(tail="r2")
    stage.accept(broken)
    stage.accept(healthy)

    def rows(frame: Any) -> None:
        frame.row(broken.choices[0].key, b"a")
        frame.row(healthy.choices[0].key, b"b", finish=STOP)

    stage.step(rows)
    assert content(healthy) == "b"
    assert broken.frames[-1] == b"data: [DONE]\n\n"
    assert broken.frames[-2].startswith(b"event: error\n" if named else b'data: {"error"')
    assert broken.choices[0].key in stage.engine.aborted
    with pytest.raises(AntiphonError, match="failed to process"):
        await broken.finished()
    frames = list(broken.frames)
    reader = Subscription(broken, ping_s=0, leave=lambda: None)
    assert [piece async for piece in reader] == [b"".join(frames)]
    assert not stage.fanout.has_tail("r1")


async def test_a_projection_that_breaks_on_acceptance_is_refused_before_the_head() -> None:
    stage = Stage()
    run = stage.open(Answer(Breaks(0), lambda logs: {}))
    stage.accept(run)
    with pytest.raises(AnswerFailed):
        await run.opened()
    assert run.frames == []
    assert run.logs[0].terminal


def test_a_segmenter_that_keeps_raising_is_not_asked_again_for_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("segmenter")

    stage = Stage()
    run = stage.open()
    stage.accept(run)
    monkeypatch.setattr("responsory.segments.Segmenter.feed", fail)
    monkeypatch.setattr("responsory.segments.Segmenter.finish", fail)
    stage.step(lambda frame: frame.row(run.choices[0].key, b"a"))
    assert "error" in chunks(run)[-1]
    assert run.logs[0].terminal


def test_a_run_that_cannot_even_be_failed_still_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("fail")

    stage = Stage()
    run = stage.open()
    stage.accept(run)
    monkeypatch.setattr(Choice, "fail", fail)
    monkeypatch.setattr(Choice, "advance", fail)
    stage.step(lambda frame: frame.row(run.choices[0].key, b"a"))
    assert run.ended
    assert "error" in chunks(run)[-1]


def test_a_call_refused_in_part_leaves_no_log_open() -> None:
    stage = Stage()
    run = stage.open(stream(2), n=2)
    error = EngineError(code="engine_overloaded", message="full")
    stage.step(lambda frame: frame.row(run.choices[0].key))
    stage.step(lambda frame: frame.row(run.choices[1].key, finish=Finish.ERROR, error=error))
    assert run.logs[0].terminal
    assert len(run.logs[1]) == 0


TOLD = [
    ("grammar_invalid", 400, "invalid_schema", "regex", "the grammar excludes all"),
    ("unsupported", 400, "unsupported_parameter", "min_tokens", "min_tokens exclude them all"),
    ("context_length_exceeded", 400, "context_length_exceeded", "messages", "context length"),
    ("engine_overloaded", 503, "overloaded", None, "capacity"),
]
"""Code of the engine, status, code, param and words for the client."""
HELD = Sampling(seed=3, constraint=Constraint(kind="regex", text="a", param="regex"))


def break_down(stage: Stage, run: Run, code: str, words: str) -> None:
    """A first row with text, then one that ends in this error."""
    error = EngineError(code=code, message=words)
    stage.step(lambda frame: frame.row(run.choices[0].key, b"a"))
    stage.step(lambda frame: frame.row(run.choices[0].key, finish=Finish.ERROR, error=error))


@pytest.mark.parametrize(("code", "status", "told", "param", "words"), TOLD)
@pytest.mark.parametrize("answer", [unary, stream])
async def test_an_error_after_the_accept_row_is_what_it_is_while_nothing_has_left(
    answer: Callable[[], Answer],
    code: str,
    status: int,
    told: str,
    param: str | None,
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    plan = attrs.evolve(stage.plan(answer()), sampling=HELD)
    able = attrs.evolve(stage.model.info, capabilities=frozenset({Capability.GRAMMAR}))
    run = stage.fanout.open(attrs.evolve(plan, model=attrs.evolve(stage.model, info=able)))
    stage.accept(run)
    if plan.answer.stream is None:
        await run.opened()
    caplog.set_level("INFO")
    break_down(stage, run, code, words)
    # A body waits for its end by now, a stream is not even open.
    due = run.finished() if plan.answer.stream is None else run.opened()
    with pytest.raises(AntiphonError) as caught:
        await due
    failure = caught.value
    assert (failure.status, failure.code, failure.param) == (status, told, param)
    assert words in failure.message
    (line,) = caplog.records
    assert line.levelname == ("ERROR" if status == 500 else "INFO")
    assert run.logs[0].terminal


@pytest.mark.parametrize("code", [case[0] for case in TOLD])
async def test_an_error_after_the_head_of_a_stream_says_what_happened(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    run = stage.open(responses_answer(stream=True), echo={"model": "m"})
    stage.accept(run)
    await run.opened()
    words = next(case[4] for case in TOLD if case[0] == code)
    break_down(stage, run, code, words)
    assert run.frames[-1] == b"data: [DONE]\n\n"
    failed = json.loads(run.frames[-2].split(b"data: ", 1)[1])["response"]
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "server_error"
    assert words in failed["error"]["message"]
    error = json.loads(run.frames[-3].split(b"data: ", 1)[1])["error"]
    assert (error["code"], error["message"]) == ("server_error", failed["error"]["message"])
    (line,) = caplog.records
    assert line.levelname == "ERROR"
    with pytest.raises(EngineFailed) as caught:
        await run.finished()
    assert caught.value.message == failed["error"]["message"]
