"""openai-agents on Responses and on chat: a run with and without tools, streamed and not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from conformance.clients.conftest import HELLO, Wire
from conformance.sdk.optional import conformance_package

agents = conformance_package("agents")


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """It would send traces of its runs to OpenAI."""
    agents.set_tracing_disabled(True)
    yield
    agents.set_tracing_disabled(False)


@pytest.fixture(params=["responses", "chat"])
def endpoint(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def agent_of(client: openai.AsyncOpenAI, endpoint: str, name: str, **options: Any) -> Any:
    kinds = {
        "responses": agents.OpenAIResponsesModel,
        "chat": agents.OpenAIChatCompletionsModel,
    }
    model = kinds[endpoint](model=name, openai_client=client)
    settings = agents.ModelSettings(include_usage=True)
    return agents.Agent(
        name="Helper", instructions="Be brief.", model=model, model_settings=settings, **options
    )


async def test_a_run(async_replay: openai.AsyncOpenAI, endpoint: str) -> None:
    agent = agent_of(async_replay, endpoint, "plain/hello")
    result = await agents.Runner.run(agent, "Hi")
    assert result.final_output == HELLO
    again = await agents.Runner.run(
        agent, [*result.to_input_list(), {"role": "user", "content": "?"}]
    )
    assert again.final_output == HELLO


async def test_a_streamed_run(async_replay: openai.AsyncOpenAI, endpoint: str) -> None:
    agent = agent_of(async_replay, endpoint, "think/then-text")
    run = agents.Runner.run_streamed(agent, "Hi")
    kinds = [
        event.data.type async for event in run.stream_events() if event.type == "raw_response_event"
    ]
    assert run.final_output == "Good day!"
    assert kinds[-1] == "response.completed"
    assert run.context_wrapper.usage.output_tokens > 0
    await agents.Runner.run(agent, [*run.to_input_list(), {"role": "user", "content": "?"}])


async def test_a_refusal(async_replay: openai.AsyncOpenAI, endpoint: str) -> None:
    with pytest.raises(openai.BadRequestError, match="nope"):
        await agents.Runner.run(agent_of(async_replay, endpoint, "nope"), "Hi")


SCRIPTS = {
    "tools/weather": (["Zürich"], "It is 17 degrees in Zürich."),
    "tools/think-first": (["Zürich"], "It is 17 degrees in Zürich."),
    "tools/two-calls": (["Oslo", "Rome"], "Oslo and Rome both have 17 degrees."),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_tool_is_run(
    async_scripted: openai.AsyncOpenAI, wire: Wire, endpoint: str, script: str, streamed: bool
) -> None:
    asked: list[str] = []

    async def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return "17 degrees"

    agent = agent_of(async_scripted, endpoint, script, tools=[agents.function_tool(get_weather)])
    if streamed:
        run = agents.Runner.run_streamed(agent, "Hi")
        kinds = [
            event.name
            async for event in run.stream_events()
            if event.type == "run_item_stream_event"
        ]
        assert {"tool_called", "tool_output", "message_output_created"} <= set(kinds)
    else:
        run = await agents.Runner.run(agent, "Hi")
    cities, answer = SCRIPTS[script]
    assert asked == cities
    assert run.final_output == answer
    assert len(wire.requests) == 2


class Event(BaseModel):
    """What the recording ``plain/event`` says."""

    name: str
    day: str
    people: list[str]


async def test_an_output_of_a_type(async_scripted: openai.AsyncOpenAI, endpoint: str) -> None:
    agent = agent_of(async_scripted, endpoint, "plain/event", output_type=Event)
    result = await agents.Runner.run(agent, "Hi")
    assert result.final_output == Event(name="Science Fair", day="Friday", people=["Alice", "Bob"])
