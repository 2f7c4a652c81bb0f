"""What a prompt had from the cache is told when it is known, and counted once."""

from __future__ import annotations

import json
from functools import partial

import pytest

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import EngineError, Finish
from antiphon.runs.answers import chat_answer, responses_answer
from runs.scripted import Stage, body, stream, unary


@pytest.mark.parametrize("streamed", [True, False])
def test_it_comes_with_the_first_token(streamed: bool) -> None:
    stage = Stage()
    run = stage.open(chat_answer(stream=streamed, choices=1, include_usage=True, logprobs=False))
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"a", cached=4))
    stage.step(lambda frame: frame.row(key, b"b", finish=Finish.STOP, stop_id=2))
    usage = json.loads(run.frames[-2][6:])["usage"] if streamed else body(run)["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 4}
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (5, 3)


def test_it_comes_with_the_end_if_there_is_no_token() -> None:
    stage = Stage()
    run = stage.open(responses_answer(stream=False), echo={"model": "m"})
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, finish=Finish.LENGTH, cached=3))
    assert body(run)["usage"]["input_tokens_details"]["cached_tokens"] == 3


def ends(key: int, cached: int, frame: FrameBuilder) -> None:
    frame.row(key, b"a", finish=Finish.LENGTH, cached=cached)


@pytest.mark.parametrize("first_is_first", [True, False])
def test_siblings_have_one_prompt_and_it_is_the_first_ones(first_is_first: bool) -> None:
    """The others have nearly all of it from the first: that is no saving of the call."""
    stage = Stage()
    run = stage.open(unary(2), n=2)
    stage.accept(run)
    rows = [(run.choices[0].key, 0), (run.choices[1].key, 4)]
    for row in rows if first_is_first else reversed(rows):
        stage.step(partial(ends, *row))
    usage = body(run)["usage"]
    assert (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]) == (5, 0)


def test_it_is_told_of_a_failed_answer_as_well() -> None:
    stage = Stage()
    run = stage.open(responses_answer(stream=True), echo={"model": "m"})
    stage.accept(run)
    key = run.choices[0].key
    error = EngineError(code="engine_failed", message="m")
    stage.step(lambda frame: frame.row(key, b"Hi", cached=5, finish=Finish.ERROR, error=error))
    failed = json.loads(run.frames[-2].split(b"data: ", 1)[1])["response"]
    assert failed["usage"]["input_tokens_details"]["cached_tokens"] == 5


def test_an_engine_that_says_nothing_had_nothing() -> None:
    stage = Stage()
    run = stage.open(stream(include_usage=True))
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"a", finish=Finish.LENGTH))
    usage = json.loads(run.frames[-2][6:])["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
