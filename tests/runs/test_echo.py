"""A prompt that the answer begins with, and what is known of its tokens."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from antiphon.engines.port import Finish, PromptLogprobs
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.answers import Answer, completions_answer
from antiphon.runs.plan import EchoedPrompt, Sampling
from antiphon.runs.run import Run
from runs.scripted import Stage, body

PROMPT = b"To be"


def answer(*, streamed: bool = False, logprobs: bool = False, choices: int = 1) -> Answer:
    return completions_answer(
        stream=streamed, choices=choices, per_prompt=1, include_usage=False, logprobs=logprobs
    )


def ids(*prompts: bytes) -> list[array[int]]:
    return [array("I", list(prompt)) for prompt in prompts]


def scores(count: int, top_n: int = 0) -> PromptLogprobs:
    """-1, -2, … for the tokens after the first, each the likeliest before the letter "z"."""
    values = [-float(at) for at in range(1, count)]
    top = [(PROMPT[at], value) for at, value in enumerate(values, 1)] if top_n else []
    return PromptLogprobs(
        logprob=array("f", values),
        top_n=top_n,
        top_id=array("I", [token for each in top for token in (each[0], ord("z"))]),
        top_lp=array("f", [value for each in top for value in (each[1], -9.0)]),
    )


def texts(run: Run) -> list[str]:
    chunks = [json.loads(frame[6:]) for frame in run.frames[:-1]]
    return [chunk["choices"][0]["text"] for chunk in chunks]


def test_the_first_chunk_is_the_prompt() -> None:
    stage = Stage()
    run = stage.open(
        answer(streamed=True), prompts=ids(PROMPT), echoed=[EchoedPrompt(text="To be")]
    )
    stage.accept(run)
    assert json.loads(run.frames[0][6:])["choices"][0]["text"] == "To be"
    stage.step(lambda frame: frame.row(run.choices[0].key, b" or", finish=Finish.STOP))
    assert texts(run) == ["To be", " or"]


def test_each_choice_begins_with_its_own_prompt() -> None:
    stage = Stage()
    run = stage.open(
        completions_answer(
            stream=False, choices=4, per_prompt=2, include_usage=False, logprobs=False
        ),
        prompts=ids(b"A", b"B"),
        n=2,
        echoed=[EchoedPrompt(text="A"), EchoedPrompt(text="B")],
    )
    stage.accept(run)
    for choice in run.choices:
        stage.step(lambda frame, key=choice.key: frame.row(key, b"!", finish=Finish.LENGTH))  # type: ignore[misc]  # bound early
    assert [choice["text"] for choice in body(run)["choices"]] == ["A!", "A!", "B!", "B!"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_prompt_alone_is_scored(streamed: bool) -> None:
    stage = Stage()
    run = stage.open(
        answer(streamed=streamed, logprobs=True),
        prompts=ids(PROMPT),
        echoed=[EchoedPrompt(text="To be")],
        sampling=Sampling(seed=0, logprobs=2, prompt_logprobs=2),
    )
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, finish=Finish.LENGTH, prompt_lp=scores(len(PROMPT), 2)))
    choice: dict[str, Any]
    if streamed:
        choice = json.loads(run.frames[0][6:])["choices"][0]
    else:
        choice = body(run)["choices"][0]
        assert body(run)["usage"]["completion_tokens"] == 0
    assert (choice["text"], choice["finish_reason"]) == ("To be", "length")
    assert choice["logprobs"] == {
        "tokens": ["T", "o", " ", "b", "e"],
        "token_logprobs": [None, -1.0, -2.0, -3.0, -4.0],
        "top_logprobs": [
            None,
            {"o": -1.0, "z": -9.0},
            {" ": -2.0, "z": -9.0},
            {"b": -3.0, "z": -9.0},
            {"e": -4.0, "z": -9.0},
        ],
        "text_offset": [0, 1, 2, 3, 4],
    }


def test_offsets_go_on_after_the_prompt() -> None:
    stage = Stage()
    run = stage.open(
        answer(logprobs=True),
        prompts=ids(PROMPT),
        echoed=[EchoedPrompt(text="To be")],
        sampling=Sampling(seed=0, logprobs=0, prompt_logprobs=0),
    )
    stage.accept(run)
    key = run.choices[0].key
    stage.step(
        lambda frame: frame.row(
            key,
            b"or",
            logprobs=[-0.5, -0.25],
            finish=Finish.STOP,
            prompt_lp=scores(len(PROMPT)),
        )
    )
    logprobs = body(run)["choices"][0]["logprobs"]
    assert logprobs["text_offset"] == [0, 1, 2, 3, 4, 5, 6]
    assert logprobs["token_logprobs"][-2:] == [-0.5, -0.25]


def test_a_token_that_the_text_does_not_show_has_no_extent() -> None:
    """What the model wants before a text may be spelt like the text itself."""
    stage = Stage()
    table = Detokenizer([b"<s>", b"a", b"<s>"], hidden=frozenset({0}))
    stage.model.prompter.detokenizer = lambda **_: table  # type: ignore[method-assign]  # a table of three
    run = stage.open(
        answer(logprobs=True),
        prompts=[array("I", [0, 1, 2])],
        echoed=[EchoedPrompt(text="a<s>", unseen=1)],
        sampling=Sampling(seed=0, logprobs=0, prompt_logprobs=0),
    )
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, finish=Finish.LENGTH, prompt_lp=scores(3)))
    logprobs = body(run)["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["<s>", "a", "<s>"]
    assert logprobs["text_offset"] == [0, 0, 1]


def test_a_stop_string_is_not_looked_for_in_the_prompt() -> None:
    stage = Stage()
    run = stage.open(
        answer(), prompts=ids(PROMPT), echoed=[EchoedPrompt(text="To be")], stop=("be",)
    )
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b" or not to be"))
    choice = body(run)["choices"][0]
    assert (choice["text"], choice["stop_reason"]) == ("To be or not to ", "be")


def test_logprobs_that_never_came_cost_no_prompt() -> None:
    stage = Stage()
    run = stage.open(
        answer(logprobs=True),
        prompts=ids(PROMPT),
        echoed=[EchoedPrompt(text="To be")],
        sampling=Sampling(seed=0, logprobs=0, prompt_logprobs=0),
    )
    stage.accept(run)
    key = run.choices[0].key
    stage.step(lambda frame: frame.row(key, b"!", logprobs=[-0.5], finish=Finish.STOP))
    choice = body(run)["choices"][0]
    assert choice["text"] == "To be!"
    assert choice["logprobs"]["text_offset"] == [5]
