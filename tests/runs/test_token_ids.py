"""The ids of a run's tokens: with the prompt's, the sequence that the model saw and made."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import Finish
from antiphon.runs.answers import Answer, chat_answer, completions_answer
from antiphon.runs.run import Run
from responsory.segments import family
from runs.scripted import Stage, body, chunks

EOS = 2
ASKED: dict[str, Any] = {"tell_tokens": True, "prompt_ids": True}


def chat(*, stream: bool, choices: int = 1, counted: bool = False) -> Answer:
    return chat_answer(
        stream=stream,
        choices=choices,
        token_ids=True,
        include_usage=counted,
        continuous_usage=[5] if counted else None,
    )


def told(run: Run, choice: int = 0) -> list[int]:
    """The ids in a chat stream, chunk after chunk."""
    return [
        token
        for chunk in chunks(run)
        for part in chunk["choices"]
        if part["index"] == choice
        for token in part["token_ids"]
    ]


def test_the_end_token_is_one_of_them() -> None:
    stage = Stage()
    streamed, unary = (
        stage.open(chat(stream=True), **ASKED),
        stage.open(chat(stream=False), **ASKED),
    )
    for run in (streamed, unary):
        stage.accept(run)
        key = run.choices[0].key
        stage.step(lambda frame, key=key: frame.row(key, b"Hi", finish=Finish.STOP, stop_id=EOS))  # type: ignore[misc]  # bound early
    answer = body(unary)
    assert answer["choices"][0]["token_ids"] == told(streamed) == [*b"Hi", EOS]
    assert answer["usage"]["completion_tokens"] == 3
    assert answer["prompt_token_ids"] == chunks(streamed)[0]["prompt_token_ids"] == [0] * 5


def test_ids_are_cut_where_a_stop_string_cuts_the_text() -> None:
    stage = Stage()
    run = stage.open(chat(stream=True), stop=("END",), **ASKED)
    stage.accept(run)
    key = run.choices[0].key
    for piece in (b"a E", b"N", b"D b"):
        stage.step(lambda frame, piece=piece: frame.row(key, piece))  # type: ignore[misc]  # bound early
    assert told(run) == list(b"a ")
    assert body(run)["usage"]["completion_tokens"] == len(b"a END")


def test_markers_are_tokens_too() -> None:
    stage = Stage()
    text = b'<think>a</think>b<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    run = stage.open(chat(stream=True), format=family("think+hermes"), calls=True, **ASKED)
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, text[:30]))
    stage.step(lambda frame: frame.row(key, text[30:], finish=Finish.STOP, stop_id=EOS))
    assert told(run) == [*text, EOS]


def test_every_chunk_tells_the_counts_of_all_choices_so_far() -> None:
    stage = Stage()
    run = stage.open(chat(stream=True, choices=2, counted=True), n=2, **ASKED)
    stage.accept(run)
    first, second = (choice.key for choice in run.choices)
    stage.step(lambda frame: frame.row(first, b"ab"))
    stage.step(lambda frame: frame.row(second, b"c", finish=Finish.LENGTH))
    stage.step(lambda frame: frame.row(first, b"d", finish=Finish.STOP, stop_id=EOS))
    counts = [chunk["usage"] for chunk in chunks(run)]
    assert [count["completion_tokens"] for count in counts] == [0, 0, 2, 3, 3, 4, 5, 5]
    assert {count["prompt_tokens"] for count in counts} == {5}
    assert all(c["total_tokens"] == 5 + c["completion_tokens"] for c in counts)


@given(data=st.binary(min_size=1, max_size=12), cuts=st.sets(st.integers(1, 11)))
def test_stream_and_body_tell_the_same_whatever_the_bytes_and_the_steps(
    data: bytes, cuts: set[int]
) -> None:
    stage = Stage()
    answers = [
        completions_answer(stream=stream, choices=1, per_prompt=1, token_ids=True)
        for stream in (True, False)
    ]
    runs = [stage.open(answer, stop=("zz",), **ASKED) for answer in answers]
    borders = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for run in runs:
        stage.accept(run)
        key = run.choices[0].key
        for start, end in pairwise(borders):
            finish = Finish.LENGTH if end == len(data) else Finish.NONE
            if not run.ended:
                stage.step(
                    lambda frame, key=key, start=start, end=end, finish=finish: frame.row(  # type: ignore[misc]  # bound early
                        key, data[start:end], finish=finish
                    )
                )
    parts = [json.loads(frame[6:])["choices"][0] for frame in runs[0].frames[:-1]]
    choice = body(runs[1])["choices"][0]
    assert [token for part in parts for token in part["token_ids"]] == choice["token_ids"]
    assert "".join(part["text"] for part in parts) == choice["text"]
    if choice["stop_reason"] is None:
        assert choice["token_ids"] == list(data)
