"""Frames to events to SSE: accept, tokens, stop strings, siblings, failures, leaving clients."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import EngineError, Finish, TokenSpelling
from antiphon.errors import AntiphonError, EngineFailed, InvalidRequest, Unavailable
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.answers import Answer, completions_answer
from antiphon.runs.choice import Choice
from antiphon.runs.plan import Sampling, TokenLimit
from antiphon.runs.run import Run
from antiphon.runs.subscribers import PING, Subscription
from responsory.events import Event
from runs.scripted import Stage, stream, unary

STOP = Finish.STOP


def chunks(run: Run) -> list[dict[str, Any]]:
    assert run.frames[-1] == b"data: [DONE]\n\n"
    return [json.loads(frame[6:]) for frame in run.frames[:-1]]


def content(run: Run, choice: int = 0) -> str:
    return "".join(
        part["delta"].get("content") or ""
        for chunk in chunks(run)
        for part in chunk.get("choices", [])
        if part["index"] == choice
    )


def body(run: Run) -> dict[str, Any]:
    return run.plan.answer.body(run.logs)


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


async def test_one_refused_sibling_refuses_the_call_and_aborts_the_others() -> None:
    stage = Stage()
    run = stage.open(stream(2), n=2)
    first, second = (choice.key for choice in run.choices)
    error = EngineError(code="engine_overloaded", message="full")
    stage.step(lambda frame: frame.row(first, cached=0))
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
    with pytest.raises(EngineFailed):
        await waiting.opened()
    with pytest.raises(Unavailable) as caught:
        stage.open(tail="r3")
    assert caught.value.code == "engine_unavailable"


async def test_an_abort_that_nobody_asked_for_means_the_server_stops() -> None:
    stage = Stage()
    run = stage.open(unary())
    stage.accept(run)
    stage.step(lambda frame: frame.row(run.choices[0].key, finish=Finish.ABORT))
    with pytest.raises(Unavailable) as caught:
        await run.finished()
    assert caught.value.code == "shutting_down"


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


async def test_a_subscription_reads_all_frames_in_whole_and_leaves_once() -> None:
    stage = Stage()
    run = stage.open()
    stage.accept(run)
    left: list[None] = []
    reader = Subscription(run, ping_s=0, leave=lambda: left.append(None))
    first = await anext(reader)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"a"))
    stage.step(lambda frame: frame.row(key, b"b", finish=STOP))
    rest = await anext(reader)  # a reader that lagged gets all it missed in one piece
    assert first + rest == b"".join(run.frames)
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    await reader.aclose()
    assert left == [None]


async def test_a_silent_stream_carries_comments() -> None:
    stage = Stage()
    run = stage.open()
    stage.accept(run)
    reader = Subscription(run, ping_s=1e-6, leave=lambda: None)
    await anext(reader)
    assert await anext(reader) == PING
    assert PING not in run.frames


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
    reader = Subscription(broken, ping_s=0, leave=lambda: None)
    assert [piece async for piece in reader] == [b"".join(broken.frames)]
    assert not stage.fanout.has_tail("r1")


async def test_a_projection_that_breaks_on_acceptance_still_ends() -> None:
    stage = Stage()
    run = stage.open(Answer(Breaks(0), lambda logs: {}))
    stage.accept(run)
    await run.opened()
    assert run.frames[-1] == b"data: [DONE]\n\n"


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
    stage.step(lambda frame: frame.row(run.choices[0].key, cached=0))
    stage.step(lambda frame: frame.row(run.choices[1].key, finish=Finish.ERROR, error=error))
    assert run.logs[0].terminal
    assert len(run.logs[1]) == 0


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
    with pytest.raises(InvalidRequest) as caught:
        stage.open(prompts=[array("I", [1]), array("I")], prompt_param="prompt")
    assert caught.value.param == "prompt"


def test_hidden_tokens_have_no_logprobs_and_move_no_offset() -> None:
    stage = Stage()
    hidden = Detokenizer([b"Hi", b"<|end|>", b" you"], hidden=frozenset({1}))
    stage.model.prompter.detokenizer = lambda: hidden  # type: ignore[method-assign]  # a table of three
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
    assert logprobs["tokens"] == ["Hi", " you"]
    assert logprobs["token_logprobs"] == [-1.0, -3.0]
    assert logprobs["text_offset"] == [0, 2]


async def test_draining_refuses_new_runs() -> None:
    stage = Stage()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.fanout.consume)
        await stage.fanout.drain(0)
    with pytest.raises(Unavailable) as caught:
        stage.open()
    assert caught.value.code == "shutting_down"
