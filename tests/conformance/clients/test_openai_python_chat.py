"""openai-python at ``/v1/chat/completions``: what it reads of answers, over both protocols."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from conformance.clients.conftest import ASK, HELLO, Wire


def test_chat_unary_and_streamed(replay: openai.OpenAI, wire: Wire) -> None:
    create = replay.chat.completions.create
    unary = create(model="plain/hello", messages=ASK)
    assert unary.choices[0].message.content == HELLO
    assert unary.usage is not None
    assert unary.usage.total_tokens == unary.usage.prompt_tokens + unary.usage.completion_tokens
    chunks = list(create(model="plain/hello", messages=ASK, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == HELLO
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({(chunk.id, chunk.created) for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)
    assert len(wire.requests) == 2


def test_chat_usage_comes_last_and_alone(replay: openai.OpenAI) -> None:
    create = replay.chat.completions.create
    options: Any = {"model": "plain/two-choices", "messages": ASK, "n": 2}
    *others, last = create(**options, stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage == create(**options).usage
    assert all(chunk.choices and chunk.usage is None for chunk in others)


def test_chat_several_choices(replay: openai.OpenAI) -> None:
    options: Any = {"model": "plain/two-choices", "messages": ASK, "n": 2}
    with (
        replay.chat.completions.stream(**options) as stream,
        pytest.raises(openai.LengthFinishReasonError) as cut,  # the helper's way to say so
    ):
        stream.get_final_completion()
    unary = replay.chat.completions.create(**options)
    for made in (cut.value.completion, unary):
        shown = [(each.index, each.message.content, each.finish_reason) for each in made.choices]
        assert shown == [(0, "Yes, sure.", "stop"), (1, "No way", "length")]


def test_chat_logprobs(replay: openai.OpenAI) -> None:
    options: Any = {"model": "plain/logprobs", "messages": ASK, "logprobs": True, "top_logprobs": 2}
    with replay.chat.completions.stream(**options) as stream:
        events = [event for event in stream if event.type == "logprobs.content.delta"]
        streamed = stream.get_final_completion().choices[0]
    unary = replay.chat.completions.create(**options).choices[0]
    assert streamed.logprobs is not None
    assert unary.logprobs is not None
    assert streamed.logprobs.content == unary.logprobs.content
    assert sum(len(event.content) for event in events) == len(unary.logprobs.content or ())
    for entry in unary.logprobs.content or ():
        assert len(entry.top_logprobs) == 2
        assert bytes(entry.bytes or ()).decode() == entry.token
    assert "".join(e.token for e in unary.logprobs.content or ()) == unary.message.content


def test_chat_reasoning(replay: openai.OpenAI) -> None:
    create = replay.chat.completions.create
    unary: Any = create(model="think/then-text", messages=ASK).choices[0].message
    assert (unary.reasoning_content, unary.content) == ("They greet me.", "Good day!")
    deltas: list[Any] = [
        chunk.choices[0].delta
        for chunk in create(model="think/then-text", messages=ASK, stream=True)
    ]
    reasoning = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert reasoning == "They greet me."
    assert "".join(delta.content or "" for delta in deltas) == "Good day!"


def test_chat_of_all_that_can_be_asked_for(replay: openai.OpenAI) -> None:
    """What other servers add on request does not disturb the helper."""
    extra = {"return_token_ids": True, "return_tokens_as_token_ids": True}
    usage: Any = {
        "include_usage": True,
        "continuous_usage_stats": True,
        "include_obfuscation": True,
    }
    with replay.chat.completions.stream(
        model="plain/logprobs",
        messages=ASK,
        logprobs=True,
        stream_options=usage,
        extra_body=extra,
    ) as stream:
        chunks: list[Any] = [event.chunk for event in stream if event.type == "chunk"]
        final = stream.get_final_completion()
    shown = [chunk for chunk in chunks if chunk.choices]
    assert all(chunk.usage.prompt_tokens for chunk in shown)
    ids = [each for chunk in shown for each in getattr(chunk.choices[0], "token_ids", None) or ()]
    assert final.usage is not None
    assert len(ids) == final.usage.completion_tokens
    assert final.choices[0].logprobs is not None
    tokens = [entry.token for entry in final.choices[0].logprobs.content or ()]
    assert tokens == [f"token_id:{each}" for each in ids]


async def test_chat_async(async_replay: openai.AsyncOpenAI, wire: Wire) -> None:
    create = async_replay.chat.completions.create
    unary = await create(model="plain/unicode", messages=ASK)
    stream = await create(model="plain/unicode", messages=ASK, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    async with async_replay.chat.completions.stream(model="plain/unicode", messages=ASK) as helper:
        final = await helper.get_final_completion()
    assert text == final.choices[0].message.content == unary.choices[0].message.content
    assert len(wire.requests) == 3
