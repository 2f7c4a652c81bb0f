"""langchain-openai on both APIs of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from conformance.clients.conftest import HELLO, Wire
from conformance.conftest import Server
from conformance.sdk.optional import conformance_package

langchain_openai = conformance_package("langchain_openai")
langchain_core = conformance_package("langchain_core.messages")


@pytest.fixture(params=[False, True], ids=["chat", "responses"])
def on_responses(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


Connect = Callable[[str], Any]


@contextmanager
def connected(server: Server, wire: Wire, on_responses: bool) -> Iterator[Connect]:
    """A chat model by the name of a recording."""
    with openai.DefaultHttpxClient(**wire.options) as http:
        yield lambda name: langchain_openai.ChatOpenAI(
            model=name,
            base_url=server.api,
            api_key="none",
            use_responses_api=on_responses,
            stream_usage=True,
            http_client=http,
        )


@pytest.fixture
def connect(replay_server: Server, wire: Wire, on_responses: bool) -> Iterator[Connect]:
    with connected(replay_server, wire, on_responses) as connect:
        yield connect


@pytest.fixture
def script(scripted_server: Server, wire: Wire, on_responses: bool) -> Iterator[Connect]:
    with connected(scripted_server, wire, on_responses) as connect:
        yield connect


def test_invoke_and_stream(connect: Connect, wire: Wire, on_responses: bool) -> None:
    model = connect("plain/hello")
    unary = model.invoke("Hi")
    assert unary.text == HELLO
    chunks = list(model.stream("Hi"))
    whole = sum(chunks[1:], chunks[0])
    assert whole.text == HELLO
    assert len([chunk for chunk in chunks if chunk.text]) > 1
    assert whole.usage_metadata == unary.usage_metadata
    assert unary.usage_metadata["output_tokens"] > 0
    paths = {request.url.path for request in wire.requests}
    assert paths == {"/v1/responses" if on_responses else "/v1/chat/completions"}
    assert len(wire.requests) == 2


async def test_async(replay_server: Server, wire: Wire, on_responses: bool) -> None:
    async with openai.DefaultAsyncHttpxClient(**wire.async_options) as http:
        model = langchain_openai.ChatOpenAI(
            model="plain/hello",
            base_url=replay_server.api,
            api_key="none",
            use_responses_api=on_responses,
            http_async_client=http,
        )
        assert (await model.ainvoke("Hi")).text == HELLO
        assert "".join([chunk.text async for chunk in model.astream("Hi")]) == HELLO


@pytest.mark.parametrize("on_responses", [True])
def test_reasoning_is_a_block_of_a_response(connect: Connect) -> None:
    model = connect("think/then-text")
    unary = model.invoke("Hi")
    chunks = list(model.stream("Hi"))
    whole = sum(chunks[1:], chunks[0])
    for message in (unary, whole):
        assert message.text == "Good day!"
        kinds = [block["type"] for block in message.content]
        assert kinds == ["reasoning", "text"]
        assert message.usage_metadata["output_token_details"]["reasoning"] > 0


def test_a_conversation_goes_on(connect: Connect, wire: Wire) -> None:
    """Its own answers, reasoning included, are taken back as history."""
    model = connect("think/then-text")
    history: list[Any] = [("human", "Hi")]
    for _ in range(2):
        history += [model.invoke(history), ("human", "Again")]
    assert [turn.text for turn in history[1::2]] == ["Good day!"] * 2
    assert len(wire.requests) == 2


def test_a_refusal(connect: Connect, wire: Wire) -> None:
    model = connect("nope")
    with pytest.raises(openai.BadRequestError, match="nope"):
        model.invoke("Hi")
    with pytest.raises(openai.BadRequestError, match="nope"):
        list(model.stream("Hi"))
    assert len(wire.requests) == 2


def test_a_failure_in_the_stream(connect: Connect, wire: Wire) -> None:
    model = connect("plain/error-in-text")
    with pytest.raises(openai.APIError, match="The engine stopped unexpectedly"):
        list(model.stream("Hi"))
    assert len(wire.requests) == 1


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"17 degrees in {city}"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("name", "cities", "answer"),
    [
        ("tools/weather", ["Zürich"], "It is 17 degrees in Zürich."),
        ("tools/think-first", ["Zürich"], "It is 17 degrees in Zürich."),
        ("tools/two-calls", ["Oslo", "Rome"], "Oslo and Rome both have 17 degrees."),
    ],
)
def test_tools(script: Connect, name: str, cities: list[str], answer: str, streamed: bool) -> None:
    model = script(name).bind_tools([get_weather])
    history: list[Any] = [("human", "Hi")]
    for calls in (cities, []):
        if streamed:
            chunks = list(model.stream(history))
            message = sum(chunks[1:], chunks[0])
        else:
            message = model.invoke(history)
        history.append(message)
        assert [call["args"] for call in message.tool_calls] == [{"city": city} for city in calls]
        assert message.invalid_tool_calls == []
        for call in message.tool_calls:
            assert call["name"] == "get_weather"
            history.append(
                langchain_core.ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])
            )
    assert message.text == answer


def test_structured_output(script: Connect) -> None:
    schema = {
        "title": "Event",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "day": {"type": "string"},
            "people": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "day", "people"],
        "additionalProperties": False,
    }
    model = script("plain/event").with_structured_output(schema, method="json_schema")
    due = {"name": "Science Fair", "day": "Friday", "people": ["Alice", "Bob"]}
    assert model.invoke("Hi") == due
