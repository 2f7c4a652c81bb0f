"""Frames to events to SSE: accept, tokens, stop strings, siblings, limits, leaving clients."""

from __future__ import annotations

import json
from array import array
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import Finish, TokenSpelling
from antiphon.errors import InvalidRequest, Unavailable
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.answers import completions_answer
from antiphon.runs.plan import Sampling, TokenLimit
from runs.scripted import Stage, body, chunks, content, stream, unary

STOP = Finish.STOP


@pytest.mark.wire("F10")
async def test_the_head_waits_for_the_accept_row_and_not_for_a_token() -> None:
    stage = Stage()
    run = stage.open()
    with anyio.move_on_after(0) as waited:
        await run.opened()
    assert waited.cancelled_caught
    stage.accept(run)
    await run.opened()
    assert json.loads(run.frames[0][6:])["choices"][0]["delta"]["role"] == "assistant"
    assert not run.ended


def test_tokens_become_text_and_the_end_is_one_finish() -> None:
    stage = Stage()
    run = stage.open()
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"Hi "))
    stage.step(lambda frame: frame.row(key, "né".encode()[:2]))
    stage.step(lambda frame: frame.row(key, "né".encode()[2:], finish=STOP, stop_id=2))
    assert content(run) == "Hi né"
    assert [c["choices"][0]["finish_reason"] for c in chunks(run)].count("stop") == 1
    assert body(run)["usage"]["completion_tokens"] == 3 + 3 + 1  # the stopping id counts
    assert stage.fanout.running == 0


def test_a_row_without_an_accept_row_is_accepted_by_its_first_tokens() -> None:
    stage = Stage()
    run = stage.open(unary())
    stage.step(lambda frame: frame.row(run.choices[0].key, b"x", finish=STOP))
    assert body(run)["choices"][0]["message"]["content"] == "x"


def test_a_stop_string_cuts_the_text_and_aborts_the_engine() -> None:
    stage = Stage()
    run = stage.open(stop=("END",))
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"one E"))
    stage.step(lambda frame: frame.row(key, b"ND two"))
    assert content(run) == "one "
    assert stage.engine.aborted == [key]
    assert chunks(run)[-1]["choices"][0]["stop_reason"] == "END"
    frames = list(run.frames)
    stage.step(lambda frame: frame.row(key, b"three"))
    stage.step(lambda frame: frame.row(key, finish=Finish.ABORT))
    assert run.frames == frames


def test_a_stop_string_that_ends_with_the_engine_is_not_aborted() -> None:
    stage = Stage()
    run = stage.open(unary(), stop=("b",))
    stage.step(lambda frame: frame.row(run.choices[0].key, b"ab", finish=Finish.LENGTH))
    assert body(run)["choices"][0]["finish_reason"] == "stop"
    assert stage.engine.aborted == []


def test_length_and_stop_ids() -> None:
    stage = Stage()
    run = stage.open(unary(), sampling=Sampling(seed=0, stop_ids=(9,)))
    stage.step(lambda frame: frame.row(run.choices[0].key, b"a", finish=STOP, stop_id=9))
    assert body(run)["choices"][0]["stop_reason"] == 9
    run = stage.open(unary())
    stage.step(lambda frame: frame.row(run.choices[0].key, b"a", finish=Finish.LENGTH))
    assert body(run)["choices"][0]["finish_reason"] == "length"


def test_a_client_that_leaves_aborts_every_choice_once() -> None:
    stage = Stage()
    run = stage.open(stream(3), n=3)
    stage.accept(run)
    stage.fanout.cancel(run)
    stage.fanout.cancel(run)
    assert sorted(stage.engine.aborted) == [choice.key for choice in run.choices]
    assert all(log.terminal for log in run.logs)
    assert stage.fanout.running == 0
    assert not stage.fanout.has_tail("r1")


def test_siblings_get_their_own_seed_and_id_and_share_the_group() -> None:
    stage = Stage()
    stage.open(stream(2), n=2, sampling=Sampling(seed=2**64 - 1))
    first, second = stage.engine.submitted
    assert (first.seed, second.seed) == (2**64 - 1, 0)
    assert (first.id, second.id) == ("r1-0", "r1-1")
    assert first.group == second.group == first.key
    assert (first.choice, second.choice) == (0, 1)


@pytest.mark.parametrize(
    ("tokens", "cut", "expected"),
    [(None, False, 95), (10, False, 10), (95, False, 95), (200, True, 95), (96, True, 95)],
)
def test_the_token_limit(tokens: int | None, cut: bool, expected: int) -> None:
    stage = Stage()
    stage.open(limit=TokenLimit(tokens=tokens, param="max_tokens", cut_to_fit=cut))
    assert stage.engine.submitted[0].max_tokens == expected


def test_prompts_and_limits_that_do_not_fit_are_refused_before_the_engine() -> None:
    stage = Stage()
    limit = TokenLimit(tokens=96, param="max_completion_tokens", cut_to_fit=False)
    with pytest.raises(InvalidRequest, match="max_completion_tokens is too large") as caught:
        stage.open(limit=limit)
    assert caught.value.param == "max_completion_tokens"
    stage.engine.info.context_length = 5
    with pytest.raises(InvalidRequest, match="is longer than the model's context length") as caught:
        stage.open()
    assert (caught.value.param, caught.value.code) == ("messages", "context_length_exceeded")
    assert stage.engine.submitted == []
    # Nothing is to be drawn, so no room is needed.
    stage.open(limit=TokenLimit(tokens=0, param="max_tokens", cut_to_fit=False))
    stage.engine.info.context_length = 4
    with pytest.raises(InvalidRequest, match="is longer than the model's context length"):
        stage.open(limit=TokenLimit(tokens=0, param="max_tokens", cut_to_fit=False))


def test_an_option_the_engine_lacks_is_refused() -> None:
    stage = Stage()
    with pytest.raises(InvalidRequest) as caught:
        stage.open(sampling=Sampling(seed=1, presence=0.5))
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "presence_penalty")


def test_recorded_spelling_gives_logprobs_per_token() -> None:
    stage = Stage("opaque")
    run = stage.open(stream(logprobs=True), sampling=Sampling(seed=1, logprobs=0), stop=("c",))
    stage.accept(run)
    spelling = [TokenSpelling(text=t, data=t.encode(), logprob=-0.5) for t in ("a", "b", "cd")]
    stage.step(
        lambda frame: frame.row(
            run.choices[0].key, [1, 2, 3], text="abcd", spelling=spelling, logprobs=[-0.5] * 3
        )
    )
    entries = [
        entry["token"]
        for chunk in chunks(run)
        if (logprobs := chunk["choices"][0].get("logprobs"))
        for entry in logprobs["content"]
    ]
    assert entries == ["a", "b"]


@given(text=st.text(st.characters(codec="utf-8"), max_size=30), data=st.data())
def test_any_grouping_of_the_tokens_gives_the_same_body(text: str, data: st.DataObject) -> None:
    tokens = text.encode()

    def played(sizes: list[int]) -> dict[str, Any]:
        stage = Stage()
        run = stage.open(unary(), stop=("ab",))
        key, at = run.choices[0].key, 0
        stage.accept(run)
        for size in sizes:
            piece, at = tokens[at : at + size], at + size
            stage.step(lambda frame, piece=piece: frame.row(key, piece))  # type: ignore[misc]  # bound default
        stage.step(lambda frame: frame.row(key, tokens[at:], finish=STOP))
        return body(run)

    sizes = data.draw(st.lists(st.integers(0, 7), max_size=12))
    assert played(sizes) == played([])


def test_a_late_reader_does_not_free_a_tail_that_is_live_again() -> None:
    stage = Stage()
    first = stage.open()
    stage.step(lambda frame: frame.row(first.choices[0].key, b"a", finish=STOP))
    second = stage.open()
    stage.fanout.cancel(first)
    assert stage.fanout.has_tail("r1")
    stage.fanout.cancel(second)
    assert not stage.fanout.has_tail("r1")


def test_an_empty_prompt_is_refused_by_its_name() -> None:
    stage = Stage()
    for prompts, param in (([[1], []], "prompt[1]"), ([[]], "prompt")):
        with pytest.raises(InvalidRequest) as caught:
            stage.open(prompts=[array("I", ids) for ids in prompts], prompt_param="prompt")
        assert caught.value.param == param


def test_hidden_tokens_keep_their_logprobs_and_move_no_offset() -> None:
    stage = Stage()
    hidden = Detokenizer([b"Hi", b"<|end|>", b" you"], hidden=frozenset({1}))
    stage.model.prompter.detokenizer = lambda **_: hidden  # type: ignore[method-assign]  # a table of three
    run = stage.open(
        completions_answer(
            stream=False, choices=1, per_prompt=1, include_usage=False, logprobs=True
        ),
        sampling=Sampling(seed=0, logprobs=0),
    )
    stage.step(
        lambda frame: frame.row(
            run.choices[0].key, [0, 1, 2], logprobs=[-1.0, -2.0, -3.0], finish=STOP
        )
    )
    logprobs = body(run)["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["Hi", "<|end|>", " you"]
    assert logprobs["token_logprobs"] == [-1.0, -2.0, -3.0]
    assert logprobs["text_offset"] == [0, 2, 2]


async def test_draining_refuses_new_runs() -> None:
    stage = Stage()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.fanout.consume)
        await stage.fanout.drain(0)
    with pytest.raises(Unavailable) as caught:
        stage.open()
    assert caught.value.code == "shutting_down"
