"""Recorded tokens: their bytes are the text, whatever they are called and wherever they are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import Finish, TokenSpelling
from antiphon.runs.answers import chat_answer, completions_answer
from antiphon.runs.plan import Sampling
from runs.scripted import Stage, body

ASKED: dict[str, Any] = {"sampling": Sampling(seed=0, logprobs=1)}


def spelled(data: bytes, name: str | None = None) -> TokenSpelling:
    text = data.decode("utf-8", "replace") if name is None else name
    return TokenSpelling(text=text, data=data, logprob=-1.0, top=((text, -1.0, data),))


SPLIT = [spelled(b"\xc3"), spelled(b"\xa9"), spelled(b" Hi", "\u2581Hi"), spelled(b"!")]


def choice(
    tokens: list[TokenSpelling],
    borders: list[int],
    finish: Finish = Finish.STOP,
    *,
    as_ids: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    stage = Stage("opaque")
    answer = chat_answer(stream=False, choices=1, logprobs=True, tokens_as_ids=as_ids)
    run = stage.open(answer, **ASKED, tokens_as_ids=as_ids, **fields)
    key = run.choices[0].key
    for start, end in pairwise([0, *borders, len(tokens)]):
        step = tokens[start:end]
        if not run.ended:
            stage.step(
                lambda frame, start=start, step=step, end=end: frame.row(  # type: ignore[misc]  # bound early
                    key,
                    range(start, end),
                    text="".join(token.text for token in step),
                    spelling=step,
                    finish=finish if end == len(tokens) else Finish.NONE,
                )
            )
    result: dict[str, Any] = body(run)["choices"][0]
    return result


@given(borders=st.sets(st.integers(1, 3)))
def test_a_character_of_several_tokens_is_one_whatever_they_are_called(borders: set[int]) -> None:
    said = choice(SPLIT, sorted(borders))
    assert said["message"]["content"] == "é Hi!"
    entries = said["logprobs"]["content"]
    assert [entry["token"] for entry in entries] == [token.text for token in SPLIT]
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == "é Hi!".encode()


@given(borders=st.sets(st.integers(1, 3)))
def test_stop_strings_are_found_in_the_text_and_not_in_names(borders: set[int]) -> None:
    assert choice(SPLIT, sorted(borders), stop=("é",))["stop_reason"] == "é"
    assert choice(SPLIT, sorted(borders), stop=("\u2581",))["stop_reason"] is None


def test_a_character_that_was_cut_is_shown_as_one() -> None:
    said = choice(SPLIT[:1], [], finish=Finish.LENGTH)
    assert said["message"]["content"] == "\ufffd"


def test_tokens_of_bytes_are_read_as_bytes() -> None:
    stage = Stage("bytes")
    run = stage.open(
        completions_answer(stream=False, choices=1, per_prompt=1, logprobs=True), **ASKED
    )
    key = run.choices[0].key
    names = [spelled(b"\xc3", "\\xc3"), spelled(b"\xa9", "\\xa9")]
    stage.step(lambda frame: frame.row(key, [0xC3, 0xA9], spelling=names, finish=Finish.STOP))
    said = body(run)["choices"][0]
    assert said["text"] == "é"
    assert said["logprobs"]["tokens"] == ["\\xc3", "\\xa9"]
    assert said["logprobs"]["text_offset"] == [0, 0]


def test_text_that_goes_on_with_a_spelled_token_is_said_once() -> None:
    stage = Stage("opaque")
    run = stage.open(chat_answer(stream=False, choices=1, logprobs=True), **ASKED)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, [1], text="Hel", spelling=[spelled(b"Hello")]))
    stage.step(lambda frame: frame.row(key, text="lo"))
    stage.step(lambda frame: frame.row(key, finish=Finish.STOP))
    assert body(run)["choices"][0]["message"]["content"] == "Hello"


def test_the_token_among_its_alternatives_is_named_by_its_id_too() -> None:
    said = choice(SPLIT[2:], [], as_ids=True)
    first = said["logprobs"]["content"][0]
    assert first["token"] == "token_id:0"
    assert [each["token"] for each in first["top_logprobs"]] == ["token_id:0"]
