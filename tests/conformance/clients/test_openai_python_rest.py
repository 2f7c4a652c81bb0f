"""openai-python: completions, models, and the heads of answers."""

from __future__ import annotations

from typing import Any

import openai

from conformance.clients.conftest import ASK


def test_completions(replay: openai.OpenAI) -> None:
    options: Any = {"model": "plain/two-choices", "prompt": ["Once", "Twice"], "n": 2}
    unary = replay.completions.create(**options)
    assert [choice.index for choice in unary.choices] == [0, 1, 2, 3]
    texts = dict.fromkeys(range(4), "")
    *chunks, last = replay.completions.create(
        **options, stream=True, stream_options={"include_usage": True}
    )
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == {choice.index: choice.text for choice in unary.choices}
    assert last.usage == unary.usage


def test_completions_logprobs(replay: openai.OpenAI) -> None:
    made = replay.completions.create(model="plain/logprobs", prompt="Once", logprobs=2)
    choice = made.choices[0]
    assert choice.logprobs is not None
    assert "".join(choice.logprobs.tokens or ()) == choice.text
    offsets = choice.logprobs.text_offset or []
    for token, offset in zip(choice.logprobs.tokens or (), offsets, strict=True):
        assert choice.text[offset:].startswith(token)


def test_models(replay: openai.OpenAI) -> None:
    names = [model.id for model in replay.models.list()]
    assert "think/then-text" in names
    assert replay.models.retrieve("think/then-text").object == "model"


def test_raw_answers_have_a_request_id(replay: openai.OpenAI) -> None:
    raw = replay.chat.completions.with_raw_response.create(
        model="plain/hello", messages=ASK, extra_headers={"X-Request-ID": "mine"}
    )
    assert raw.headers["x-request-id"] == "mine"
    assert raw.parse().id == "chatcmpl-mine"
    response = replay.responses.create(model="plain/hello", input="Hi")
    assert response._request_id is not None
    assert response.id == f"resp_{response._request_id}"
    with replay.chat.completions.with_streaming_response.create(
        model="plain/hello", messages=ASK, stream=True
    ) as streamed:
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert streamed.headers["x-request-id"]
        assert [line for line in streamed.iter_lines() if line][-1] == "data: [DONE]"
