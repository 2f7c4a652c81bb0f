"""openai-agents on a loaded model: it calls two tools in turn, of its own accord, and answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest

from conformance.clients.conftest import Wire, async_openai
from conformance.conftest import Server, serving
from conformance.sdk.optional import conformance_package
from known_replies import FILES

agents = conformance_package("agents")

QUESTION = "What time is it in Quito? Mail it to Tobias."
ANSWER = "It is 06:30 in Quito, and Tobias knows it."
MAIL = {"to": "Tobias", "subject": "Time", "body": "Quito: 06:30"}


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """It would send traces of its runs to OpenAI."""
    agents.set_tracing_disabled(True)
    yield
    agents.set_tracing_disabled(False)


@pytest.fixture(scope="module")
def model_server() -> Iterator[Server]:
    with serving(str(FILES.path)) as server:
        yield server


@pytest.fixture
async def client(model_server: Server, wire: Wire) -> AsyncIterator[openai.AsyncOpenAI]:
    async with async_openai(model_server, wire) as made:
        yield made


def tool(name: str, description: str, output: Any, asked: list[Any], *names: str) -> Any:
    """A tool of texts that notes what it is asked."""

    async def invoke(_: Any, arguments: str) -> str:
        asked.append((name, json.loads(arguments)))
        return json.dumps(output)

    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names),
    }
    return agents.FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("endpoint", ["responses", "chat"])
async def test_two_tools_in_turn(
    client: openai.AsyncOpenAI, wire: Wire, endpoint: str, streamed: bool
) -> None:
    asked: list[Any] = []
    kinds = {
        "responses": agents.OpenAIResponsesModel,
        "chat": agents.OpenAIChatCompletionsModel,
    }
    agent = agents.Agent(
        name="Secretary",
        instructions="You are a helpful secretary.",
        model=kinds[endpoint](model="tinychat", openai_client=client),
        model_settings=agents.ModelSettings(temperature=0),
        tools=[
            tool("get_time", "The local time in a city", {"time": "06:30"}, asked, "city"),
            tool("send_mail", "Send a mail", {"sent": True}, asked, "to", "subject", "body"),
        ],
    )
    if streamed:
        run = agents.Runner.run_streamed(agent, QUESTION)
        async for _ in run.stream_events():
            pass
    else:
        run = await agents.Runner.run(agent, QUESTION)
    assert asked == [("get_time", {"city": "Quito"}), ("send_mail", MAIL)]
    assert run.final_output == ANSWER
    assert len(wire.requests) == 3


@pytest.mark.parametrize("endpoint", ["responses", "chat"])
async def test_a_tool_that_must_be_called(
    client: openai.AsyncOpenAI, wire: Wire, endpoint: str
) -> None:
    """A strict schema, a forced choice, and then the model's own: masks and no luck."""
    del wire
    given: list[tuple[str, int]] = []

    @agents.function_tool  # type: ignore[untyped-decorator]
    async def count(word: str, times: int) -> str:
        """Counts."""
        given.append((word, times))
        return "done"

    kinds = {
        "responses": agents.OpenAIResponsesModel,
        "chat": agents.OpenAIChatCompletionsModel,
    }
    agent = agents.Agent(
        name="Counter",
        model=kinds[endpoint](model="tinychat", openai_client=client),
        model_settings=agents.ModelSettings(temperature=0, tool_choice="count", max_tokens=200),
        tools=[count],
        tool_use_behavior="stop_on_first_tool",
    )
    run = await agents.Runner.run(agent, "Count to ten.")
    assert run.final_output == "done"
    ((word, times),) = given
    assert isinstance(word, str)
    assert isinstance(times, int)
