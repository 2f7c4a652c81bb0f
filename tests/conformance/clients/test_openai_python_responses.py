"""openai-python at ``/v1/responses``: what it reads of answers, over both protocols."""

from __future__ import annotations

from typing import Any

import openai

from conformance.clients.conftest import HELLO, Wire


def test_responses(replay: openai.OpenAI, wire: Wire) -> None:
    unary = replay.responses.create(model="plain/hello", input="Hi")
    assert (unary.output_text, unary.status, unary.error) == (HELLO, "completed", None)
    events = list(replay.responses.create(model="plain/hello", input="Hi", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == HELLO
    with replay.responses.stream(model="plain/hello", input="Hi") as stream:
        snapshots = [
            event.snapshot for event in stream if event.type == "response.output_text.delta"
        ]
        final = stream.get_final_response()
    assert snapshots[-1] == final.output_text == HELLO
    assert final.usage == unary.usage
    assert len(wire.requests) == 3


def test_responses_reasoning_items(replay: openai.OpenAI) -> None:
    unary = replay.responses.create(model="think/then-text", input="Hi")
    with replay.responses.stream(model="think/then-text", input="Hi") as stream:
        deltas = [e.delta for e in stream if e.type == "response.reasoning_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == "They greet me."
    for made in (unary, final):
        reasoning, message = made.output
        assert reasoning.type == "reasoning"
        assert [part.text for part in reasoning.content or ()] == ["They greet me."]
        assert message.type == "message"
        assert made.output_text == "Good day!"
        assert made.usage is not None
        assert made.usage.output_tokens_details.reasoning_tokens > 0


def test_responses_take_their_own_output_back(replay: openai.OpenAI, wire: Wire) -> None:
    first = replay.responses.create(model="think/then-text", input="Hi")
    history: Any = [
        {"role": "user", "content": "Hi"},
        *(item.to_dict() for item in first.output),
        {"role": "user", "content": "Again"},
    ]
    again = replay.responses.create(model="think/then-text", input=history)
    assert again.output_text == "Good day!"
    assert len(wire.requests) == 2


def test_responses_logprobs(replay: openai.OpenAI) -> None:
    response = replay.responses.create(
        model="plain/logprobs",
        input="Hi",
        top_logprobs=2,
        include=["message.output_text.logprobs"],
    )
    (message,) = response.output
    assert message.type == "message"
    (part,) = message.content
    assert part.type == "output_text"
    assert "".join(entry.token for entry in part.logprobs or ()) == response.output_text
    assert all(len(entry.top_logprobs) == 2 for entry in part.logprobs or ())


def test_responses_cut_by_their_limit(replay: openai.OpenAI) -> None:
    response = replay.responses.create(model="plain/hello", input="Hi", max_output_tokens=2)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "Hello there"


async def test_responses_async(async_replay: openai.AsyncOpenAI) -> None:
    unary = await async_replay.responses.create(model="plain/hello", input="Hi")
    async with async_replay.responses.stream(model="plain/hello", input="Hi") as stream:
        final = await stream.get_final_response()
    assert final.output_text == unary.output_text == HELLO
