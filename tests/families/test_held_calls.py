"""Forced calls on real models: a hundred drawn at random, and all of them hold to the schema."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from quart.typing import TestClientProtocol as Client

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.loading import load
from known_replies import FILES

TIMES = 100
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "exact": {"type": "boolean"},
    },
    "required": ["city", "unit", "days"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


@pytest.mark.parametrize("model", [str(FILES.path), None], ids=["tinychat", "default"])
async def test_arguments_are_valid_a_hundred_times_of_a_hundred(model: str | None) -> None:
    config = Config(model=model, max_waiting=2 * TIMES)
    engine, models, example = await load(config)
    service = make_service(engine, models, config)
    async with running(service):
        client = make_app(service).test_client()
        bodies = await asyncio.gather(*(_asked(client, example.id, seed) for seed in range(TIMES)))
    valid = 0
    for body in bodies:
        (choice,) = body["choices"]
        (call,) = choice["message"]["tool_calls"]
        assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "get_weather")
        jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMA)
        valid += 1
    assert valid == TIMES
    assert len({body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]
                for body in bodies}) > TIMES // 2  # fmt: skip


async def _asked(client: Client, model: str, seed: int) -> Any:
    response = await client.post(
        "/v1/chat/completions",
        json={
            "model": model,
            "messages": [{"role": "user", "content": f"Weather in place {seed % 7}?"}],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "seed": seed,
            "temperature": 1,
            "max_tokens": 200,
        },
    )
    text = await response.get_data(as_text=True)
    assert response.status_code == 200, text
    return json.loads(text)
