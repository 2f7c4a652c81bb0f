"""The OpenAI SDK, sync and async, against recordings and against the real model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest

from conformance.conftest import Server
from conformance.test_first_light import ANSWER, QUESTION

MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]
HELLO_MODEL = "plain/hello"


@pytest.fixture(params=["real", "replay"])
def served(request: pytest.FixtureRequest) -> tuple[Server, str, str]:
    """(server, model, the answer it gives)."""
    if request.param == "real":
        return request.getfixturevalue("model_server"), "smollm2", ANSWER
    server: Server = request.getfixturevalue("replay_server")
    body = {"model": HELLO_MODEL, "messages": MESSAGES}
    answer = httpx.post(f"{server.api}/chat/completions", json=body).json()
    return server, HELLO_MODEL, answer["choices"][0]["message"]["content"]


@pytest.fixture
def sync_client(served: tuple[Server, str, str]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served[0].api, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
async def async_client(served: tuple[Server, str, str]) -> AsyncIterator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(http1=False, http2=True, timeout=60)
    async with openai.AsyncOpenAI(
        base_url=served[0].api, api_key="none", max_retries=0, http_client=http
    ) as client:
        yield client


def test_responses(served: tuple[Server, str, str], sync_client: openai.OpenAI) -> None:
    _, model, answer = served
    asked: dict[str, Any] = {"model": model, "input": QUESTION, "temperature": 0}
    # Nothing of a prompt is found again under another salt: it counts alike.
    response = sync_client.responses.create(**asked, extra_body={"cache_salt": "one"})
    assert response.output_text == answer
    assert response.status == "completed"
    with sync_client.responses.stream(**asked, extra_body={"cache_salt": "two"}) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert final.output_text == answer
    assert final.usage == response.usage


def test_chat(served: tuple[Server, str, str], sync_client: openai.OpenAI) -> None:
    _, model, answer = served
    create = sync_client.chat.completions.create
    # Nothing of a prompt is found again under another salt: it counts alike.
    unary = create(model=model, messages=MESSAGES, temperature=0, extra_body={"cache_salt": "one"})
    assert unary.choices[0].message.content == answer
    deltas = [
        chunk.choices[0].delta.content or ""
        for chunk in create(model=model, messages=MESSAGES, temperature=0, stream=True)
    ]
    assert "".join(deltas) == answer
    with sync_client.chat.completions.stream(
        model=model,
        messages=MESSAGES,
        temperature=0,
        stream_options={"include_usage": True},
        extra_body={"cache_salt": "two"},
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == answer
    assert final.choices[0].finish_reason == "stop"
    assert final.usage == unary.usage


def test_completions(served: tuple[Server, str, str], sync_client: openai.OpenAI) -> None:
    _, model, _ = served
    create = sync_client.completions.create
    unary = create(model=model, prompt="Once", temperature=0, max_tokens=5)
    chunks = create(model=model, prompt="Once", temperature=0, max_tokens=5, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == unary.choices[0].text
    assert unary.choices[0].text


async def test_async_over_http2(
    served: tuple[Server, str, str], async_client: openai.AsyncOpenAI
) -> None:
    _, model, answer = served
    unary = await async_client.responses.create(model=model, input=QUESTION, temperature=0)
    assert unary.output_text == answer
    async with async_client.responses.stream(
        model=model, input=QUESTION, temperature=0
    ) as responses:
        async for _ in responses:
            pass
        assert (await responses.get_final_response()).output_text == answer
    async with async_client.chat.completions.stream(
        model=model, messages=MESSAGES, temperature=0
    ) as chat:
        async for _ in chat:
            pass
        assert (await chat.get_final_completion()).choices[0].message.content == answer
    stream = await async_client.completions.create(
        model=model, prompt="Once", max_tokens=4, temperature=0, stream=True
    )
    assert [chunk.object async for chunk in stream][-1] == "text_completion"


def test_several_choices_and_logprobs(replay_server: Server) -> None:
    with openai.OpenAI(base_url=replay_server.api, api_key="none", max_retries=0) as client:
        with client.chat.completions.stream(
            model="plain/logprobs", messages=MESSAGES, n=2, logprobs=True, top_logprobs=2
        ) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        assert [choice.index for choice in final.choices] == [0, 1]
        for choice in final.choices:
            assert choice.logprobs is not None
            assert choice.logprobs.content is not None
            spelt = "".join(entry.token for entry in choice.logprobs.content)
            assert spelt == choice.message.content


def test_a_failure_in_the_stream_is_raised(replay_server: Server) -> None:
    with openai.OpenAI(base_url=replay_server.api, api_key="none", max_retries=0) as client:
        with pytest.raises(openai.APIError, match="The engine stopped unexpectedly"):
            list(
                client.chat.completions.create(
                    model="plain/error-in-text", messages=MESSAGES, stream=True
                )
            )
        with pytest.raises(openai.APIError, match="The engine stopped unexpectedly"):
            list(client.responses.create(model="plain/error-in-text", input="x", stream=True))


def test_refusals_become_typed_errors(replay_server: Server) -> None:
    with openai.OpenAI(base_url=replay_server.api, api_key="none", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="nope", messages=MESSAGES)
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("nope")
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve("resp_1")
        assert HELLO_MODEL in [model.id for model in client.models.list()]
