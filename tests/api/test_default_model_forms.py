"""The default model writes JSON of a schema on every endpoint, be it drawn or the likeliest."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]
import pytest
from quart import typing as served

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.loading import load
from antiphon.models.files import ModelFiles
from responsory.testing.folds import fold_chat, fold_completions, fold_responses

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
ROUTE = {
    "type": "array",
    "items": {"enum": ["north", "south"]},
    "minItems": 2,
    "maxItems": 3,
}
ASKED = {"model": "smollm2", "max_tokens": 120, "seed": 4}
CHATS = {**ASKED, "messages": [{"role": "user", "content": "Invent a person."}]}
TEXTS = {**ASKED, "prompt": "As JSON: "}
ITEMS = {"model": "smollm2", "input": "Invent a person.", "max_output_tokens": 120, "seed": 4}


@pytest.fixture(scope="module")
async def client(default_model: ModelFiles) -> AsyncIterator[served.TestClientProtocol]:
    config = Config(device="cpu", max_running=8, max_waiting=64)
    engine, models, _ = await load(config)
    service = make_service(engine, models, config)
    async with running(service):
        yield make_app(service).test_client()


async def post(client: served.TestClientProtocol, path: str, fields: dict[str, Any]) -> Any:
    response = await client.post(path, json=fields)
    assert response.status_code == 200, await response.get_data()
    return response


def chunked(schema: Any) -> dict[str, Any]:
    named = {"name": "form", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def text_format(schema: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "form", "schema": schema}}}


async def chats(client: served.TestClientProtocol, **fields: Any) -> list[str]:
    """The contents of two choices, and of a streamed one."""
    response = await post(client, "/v1/chat/completions", {**CHATS, **fields, "n": 2})
    choices = (await response.get_json())["choices"]
    response = await post(client, "/v1/chat/completions", {**CHATS, **fields, "stream": True})
    choices += fold_chat([await response.get_data()])["choices"].values()
    return [choice["message"]["content"] for choice in choices]


async def completions(client: served.TestClientProtocol, **fields: Any) -> list[str]:
    """The text of a choice, and of a streamed one."""
    response = await post(client, "/v1/completions", {**TEXTS, **fields})
    choices = (await response.get_json())["choices"]
    response = await post(client, "/v1/completions", {**TEXTS, **fields, "stream": True})
    choices += fold_completions([await response.get_data()])["choices"].values()
    return [choice["text"] for choice in choices]


async def responses(client: served.TestClientProtocol, **fields: Any) -> list[str]:
    """The text of a response, and of a streamed one."""
    response = await post(client, "/v1/responses", {**ITEMS, **fields})
    items = (await response.get_json())["output"]
    response = await post(client, "/v1/responses", {**ITEMS, **fields, "stream": True})
    items += fold_responses([await response.get_data()])["output"]
    return [item["content"][0]["text"] for item in items]


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("schema", [PERSON, ROUTE], ids=["object", "array"])
async def test_every_endpoint(
    client: served.TestClientProtocol, schema: Any, temperature: float
) -> None:
    drawn = {"temperature": temperature}
    texts = [
        *await chats(client, **chunked(schema), **drawn),
        *await completions(client, **chunked(schema), **drawn),
        *await responses(client, **text_format(schema), **drawn),
    ]
    assert len(texts) == 7
    for text in texts:
        jsonschema.validate(json.loads(text), schema)


async def test_beside_streams_that_are_free(client: served.TestClientProtocol) -> None:
    """They say what they say alone."""
    question = {**CHATS, "temperature": 0, "max_tokens": 24}

    async def free() -> str:
        body = await (await post(client, "/v1/chat/completions", question)).get_json()
        return str(body["choices"][0]["message"]["content"])

    alone = await free()
    found: list[str] = []

    async def beside() -> None:
        found.append(await free())

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            held = {**CHATS, **chunked(PERSON), "seed": number}
            tasks.start_soon(post, client, "/v1/chat/completions", held)
            tasks.start_soon(beside)
    assert found == [alone] * 3
