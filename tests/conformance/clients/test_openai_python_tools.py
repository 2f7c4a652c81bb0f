"""openai-python with tools: calls as the SDK reads them, and the answer after their output."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from conformance.clients.conftest import ASK, Wire

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
DESCRIPTION = "The weather in a city."
NESTED: Any = {
    "type": "function",
    "function": {"name": "get_weather", "description": DESCRIPTION, "parameters": PARAMETERS},
}
FLAT: Any = {
    "type": "function",
    "name": "get_weather",
    "description": DESCRIPTION,
    "parameters": PARAMETERS,
    "strict": False,
}
ANSWER = "It is 17 degrees in Zürich."
CITIES = ["Oslo", "Rome"]


class get_weather(BaseModel):  # noqa: N801  # the tool has the name of its class
    """The weather in a city."""

    city: str


def chat_call(client: openai.OpenAI, streamed: bool, **options: Any) -> Any:
    """The message and the reason it ended."""
    if not streamed:
        return client.chat.completions.create(tools=[NESTED], **options).choices[0]
    with client.chat.completions.stream(tools=[NESTED], **options) as stream:
        kinds = [event.type for event in stream]
        choice = stream.get_final_completion().choices[0]
    assert kinds.count("tool_calls.function.arguments.done") == len(choice.message.tool_calls or ())
    return choice


@pytest.mark.parametrize("streamed", [False, True])
def test_chat(scripted: openai.OpenAI, wire: Wire, streamed: bool) -> None:
    choice = chat_call(scripted, streamed, model="tools/weather", messages=ASK)
    assert choice.finish_reason == "tool_calls"
    assert not choice.message.content  # streamed it is "", as the role comes before all is known
    (call,) = choice.message.tool_calls
    assert (call.type, call.function.name) == ("function", "get_weather")
    assert json.loads(call.function.arguments) == {"city": "Zürich"}
    history = [*ASK, sent_back(choice.message), output_of(call)]
    choice = chat_call(scripted, streamed, model="tools/weather", messages=history)
    assert (choice.finish_reason, choice.message.content) == ("stop", ANSWER)
    assert not choice.message.tool_calls
    assert len(wire.requests) == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_chat_with_two_calls(scripted: openai.OpenAI, streamed: bool) -> None:
    choice = chat_call(scripted, streamed, model="tools/two-calls", messages=ASK)
    assert choice.message.content.strip() == "Let me look."
    calls = choice.message.tool_calls
    assert [json.loads(call.function.arguments)["city"] for call in calls] == CITIES
    assert len({call.id for call in calls}) == 2
    history = [*ASK, sent_back(choice.message), *map(output_of, calls)]
    choice = chat_call(scripted, streamed, model="tools/two-calls", messages=history)
    assert choice.message.content == "Oslo and Rome both have 17 degrees."


def sent_back(message: Any) -> Any:
    return message.model_dump(exclude_none=True, exclude={"parsed"})


def output_of(call: Any) -> Any:
    return {"role": "tool", "tool_call_id": call.id, "content": "17 degrees"}


def test_chat_parses_arguments(scripted: openai.OpenAI) -> None:
    options: Any = {
        "model": "tools/weather",
        "messages": ASK,
        "tools": [openai.pydantic_function_tool(get_weather)],
    }
    unary = scripted.chat.completions.parse(**options)
    with scripted.chat.completions.stream(**options) as stream:
        streamed = stream.get_final_completion()
    for made in (unary, streamed):
        calls: Any = made.choices[0].message.tool_calls
        (call,) = calls
        assert call.function.parsed_arguments == get_weather(city="Zürich")


def responses_call(client: openai.OpenAI, streamed: bool, **options: Any) -> Any:
    if not streamed:
        return client.responses.create(tools=[FLAT], **options)
    with client.responses.stream(tools=[FLAT], **options) as stream:
        told = [event for event in stream if event.type == "response.function_call_arguments.done"]
        response = stream.get_final_response()
    due = [item.arguments for item in response.output if item.type == "function_call"]
    assert [event.arguments for event in told] == due
    return response


@pytest.mark.parametrize("streamed", [False, True])
def test_responses(scripted: openai.OpenAI, wire: Wire, streamed: bool) -> None:
    asked: Any = [{"role": "user", "content": "Hi"}]
    first = responses_call(scripted, streamed, model="tools/weather", input=asked)
    (call,) = first.output
    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed")
    assert json.loads(call.arguments) == {"city": "Zürich"}
    history = [*asked, *replayed(first), answered(call)]
    second = responses_call(scripted, streamed, model="tools/weather", input=history)
    assert second.output_text == ANSWER
    assert len(wire.requests) == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_responses_with_two_calls(scripted: openai.OpenAI, streamed: bool) -> None:
    asked: Any = [{"role": "user", "content": "Hi"}]
    first = responses_call(scripted, streamed, model="tools/two-calls", input=asked)
    assert first.output_text.strip() == "Let me look."
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == CITIES
    history = [*asked, *replayed(first), *map(answered, calls)]
    second = responses_call(scripted, streamed, model="tools/two-calls", input=history)
    assert second.output_text == "Oslo and Rome both have 17 degrees."


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_goes_with_its_call(scripted: openai.OpenAI, streamed: bool) -> None:
    """Sealed too, for clients that keep no text of it: each way back is taken."""
    asked: Any = [{"role": "user", "content": "Hi"}]
    options: Any = {"model": "tools/think-first", "include": ["reasoning.encrypted_content"]}
    first = responses_call(scripted, streamed, input=asked, **options)
    reasoning, call = first.output
    assert (reasoning.type, call.type) == ("reasoning", "function_call")
    assert reasoning.content[0].text == "The tool knows."
    assert reasoning.encrypted_content
    clear = reasoning.to_dict() | {"encrypted_content": None}
    sealed = reasoning.to_dict() | {"content": []}
    for sent in (reasoning.to_dict(), clear, sealed):
        history = [*asked, sent, call.to_dict(), answered(call)]
        second = responses_call(scripted, streamed, input=history, **options)
        assert [item.type for item in second.output] == ["reasoning", "message"]
        assert second.output_text == ANSWER


def replayed(response: Any) -> list[Any]:
    return [item.to_dict() for item in response.output]


def answered(call: Any) -> Any:
    return {"type": "function_call_output", "call_id": call.call_id, "output": "17 degrees"}


def test_responses_parse_arguments(scripted: openai.OpenAI) -> None:
    options: Any = {
        "model": "tools/weather",
        "input": "Hi",
        "tools": [openai.pydantic_function_tool(get_weather)],
    }
    unary = scripted.responses.parse(**options)
    (call,) = unary.output
    assert call.type == "function_call"
    assert call.parsed_arguments == get_weather(city="Zürich")


async def test_async(async_scripted: openai.AsyncOpenAI) -> None:
    chat = await async_scripted.chat.completions.create(
        model="tools/weather", messages=ASK, tools=[NESTED]
    )
    assert chat.choices[0].message.tool_calls
    async with async_scripted.responses.stream(
        model="tools/weather", input="Hi", tools=[FLAT]
    ) as stream:
        (call,) = (await stream.get_final_response()).output
    assert call.type == "function_call"
