"""openai-python's parse helpers: an answer of JSON as an object of a class of the caller's."""

from __future__ import annotations

from typing import Any

import openai
from pydantic import BaseModel

from conformance.clients.conftest import ASK, Wire


class Event(BaseModel):
    """What the recording ``plain/event`` says."""

    name: str
    day: str
    people: list[str]


FAIR = Event(name="Science Fair", day="Friday", people=["Alice", "Bob"])


def test_chat(scripted: openai.OpenAI, wire: Wire) -> None:
    options: Any = {"model": "plain/event", "messages": ASK, "response_format": Event}
    assert scripted.chat.completions.parse(**options).choices[0].message.parsed == FAIR
    with scripted.chat.completions.stream(**options) as stream:
        parsed = [event.parsed for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert parsed[-1] == FAIR.model_dump()
    assert final.choices[0].message.parsed == FAIR
    assert len(wire.requests) == 2


def test_responses(scripted: openai.OpenAI, wire: Wire) -> None:
    options: Any = {"model": "plain/event", "input": "Hi", "text_format": Event}
    assert scripted.responses.parse(**options).output_parsed == FAIR
    with scripted.responses.stream(**options) as stream:
        final = stream.get_final_response()
    assert final.output_parsed == FAIR
    assert final.text is not None
    assert final.text.format is not None
    assert final.text.format.type == "json_schema"
    assert len(wire.requests) == 2


async def test_async(async_scripted: openai.AsyncOpenAI) -> None:
    chat = await async_scripted.chat.completions.parse(
        model="plain/event", messages=ASK, response_format=Event
    )
    assert chat.choices[0].message.parsed == FAIR
    response = await async_scripted.responses.parse(
        model="plain/event", input="Hi", text_format=Event
    )
    assert response.output_parsed == FAIR
