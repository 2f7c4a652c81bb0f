"""openai-python: refusals and failures are its own exceptions, and are not asked for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

from conformance.clients.conftest import ASK, Wire, sync_openai
from conformance.conftest import FIXTURES, REPLAY, Server, serving

FAILS = "plain/error-in-text"
MESSAGE = "The engine stopped unexpectedly"


def chat(client: openai.OpenAI, **options: Any) -> Any:
    body = {"model": "plain/hello", "messages": ASK, **options}
    return client.chat.completions.create(**body)


def respond(client: openai.OpenAI, **options: Any) -> Any:
    return client.responses.create(**{"model": "plain/hello", "input": "Hi", **options})


def complete(client: openai.OpenAI, **options: Any) -> Any:
    return client.completions.create(**{"model": "plain/hello", "prompt": "Hi", **options})


Ask = Callable[..., Any]
every_endpoint = pytest.mark.parametrize("ask", [chat, respond, complete])


@every_endpoint
@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_value(replay: openai.OpenAI, wire: Wire, ask: Ask, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(replay, temperature=3, stream=stream)
    assert refused.value.param == "temperature"
    assert refused.value.type == "invalid_request_error"
    assert refused.value.request_id
    assert len(wire.requests) == 1


@every_endpoint
def test_an_unknown_model(replay: openai.OpenAI, wire: Wire, ask: Ask) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(replay, model="nope")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    assert len(wire.requests) == 1


def test_what_is_not_found(replay: openai.OpenAI, wire: Wire) -> None:
    with pytest.raises(openai.NotFoundError, match="nope"):
        replay.models.retrieve("nope")
    with pytest.raises(openai.NotFoundError):
        replay.responses.retrieve("resp_1")
    with pytest.raises(openai.NotFoundError):
        respond(replay, previous_response_id="resp_1")
    assert len(wire.requests) == 3


@every_endpoint
def test_a_failure_in_the_stream(replay: openai.OpenAI, wire: Wire, ask: Ask) -> None:
    seen = []
    with pytest.raises(openai.APIError, match=MESSAGE) as failed:
        seen.extend(ask(replay, model=FAILS, stream=True))
    assert not isinstance(failed.value, openai.APIStatusError)
    assert failed.value.code == "server_error"
    assert seen
    assert len(wire.requests) == 1


@every_endpoint
def test_a_failure_of_a_unary_answer(replay: openai.OpenAI, wire: Wire, ask: Ask) -> None:
    with pytest.raises(openai.InternalServerError, match=MESSAGE) as failed:
        ask(replay, model=FAILS)
    assert failed.value.code == "server_error"
    # The tokens are spent: what failed once is not generated again behind the caller's back.
    assert len(wire.requests) == 1


def test_a_key(wire: Wire) -> None:
    arguments = (*REPLAY, str(FIXTURES), "--api-key", "secret")
    with serving(*arguments) as server, sync_openai(server, wire) as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            chat(client)
        assert refused.value.code == "invalid_api_key"
        assert len(wire.requests) == 1
        assert chat(client.with_options(api_key="secret")).choices[0].message.content


def test_too_many_requests(wire: Wire) -> None:
    with (
        serving(*REPLAY, str(FIXTURES), "--rate-limit", "1") as server,
        sync_openai(server, wire) as client,
    ):
        once = client.with_options(max_retries=0)
        assert chat(once).choices[0].message.content
        with pytest.raises(openai.RateLimitError) as refused:
            chat(once)
    assert refused.value.type == "rate_limit_error"
    assert refused.value.request_id
    # The SDK waits that long, and no longer, when it is left to try again.
    assert 1 <= int(refused.value.response.headers["retry-after"]) <= 60


def test_an_answer_that_takes_too_long(wire: Wire) -> None:
    with (
        serving(*REPLAY, str(FIXTURES), "--request-timeout", "0.1") as server,
        sync_openai(server, wire) as client,
    ):
        once = client.with_options(max_retries=0)
        for ask in (chat, respond):
            with pytest.raises(openai.InternalServerError) as late:
                ask(once, model="plain/hold")
            assert (late.value.status_code, late.value.code) == (504, "timeout")
            with pytest.raises(openai.APIError) as cut:
                list(ask(once, model="plain/hold", stream=True))
            assert cut.value.code == "server_error"  # a response knows no other
    assert len(wire.requests) == 4


async def test_async(async_replay: openai.AsyncOpenAI, wire: Wire) -> None:
    with pytest.raises(openai.BadRequestError):
        await async_replay.responses.create(model="plain/hello", input="Hi", temperature=3)
    stream = await async_replay.responses.create(model=FAILS, input="Hi", stream=True)
    with pytest.raises(openai.APIError, match=MESSAGE):
        async for _ in stream:
            pass
    assert len(wire.requests) == 2


def test_nobody_is_there(replay_server: Server, wire: Wire) -> None:
    """A connection that fails is tried again; the count of requests can tell."""
    with sync_openai(replay_server, wire) as client:
        gone = client.with_options(base_url="http://127.0.0.1:9/v1", max_retries=1)
        with pytest.raises(openai.APIConnectionError):
            chat(gone)
    assert len(wire.requests) == 2
