"""A recording of turns: a script for clients that go on when they were answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.app import make_app, make_service, running
from antiphon.config import Config
from antiphon.loading import load_replay
from api.conftest import Bench

HEADER = {
    "format": 1,
    "source": "handmade",
    "model": "script",
    "family": "hermes",
    "tokenizer": "opaque",
    "prompt_tokens": 9,
    "turns": True,
}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOL = {"name": "f", "parameters": {"type": "object"}}


@pytest.fixture
async def script(tmp_path: Path) -> AsyncIterator[Bench]:
    rows: list[Any] = [HEADER]
    for turn, text in enumerate([CALL, "First.", "Second."]):
        rows += [[1, turn, [turn], text, None], ["finish", turn, "stop"]]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    tmp_path.joinpath("talk.jsonl").write_text(lines, encoding="utf-8")
    engine, models, _ = await load_replay(Config(engine="replay", fixtures=tmp_path, pace="full"))
    service = make_service(engine, models)
    async with running(service):
        yield Bench(service, make_app(service).test_client())


async def chat(bench: Bench, messages: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    body = {
        "model": "talk",
        "messages": messages,
        "tools": [{"type": "function", "function": TOOL}],
        **fields,
    }
    response = await bench.client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200
    return [choice["message"] for choice in (await response.get_json())["choices"]]


async def test_each_turn_of_a_chat_is_the_next_of_the_script(script: Bench) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go"}]
    (called,) = await chat(script, history)
    (call,) = called["tool_calls"]
    history += [called, {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
    said = []
    for _ in range(3):
        (answer,) = await chat(script, history)
        said.append(answer["content"])
        history += [answer, {"role": "user", "content": "And?"}]
    assert said == ["First.", "Second.", "Second."]  # the last one goes on


async def test_items_of_a_response_are_turns_too(script: Bench) -> None:
    async def create(*items: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"model": "talk", "input": list(items), "tools": [{"type": "function", **TOOL}]}
        response = await script.client.post("/v1/responses", json=body)
        output: list[dict[str, Any]] = (await response.get_json())["output"]
        return output

    user = {"role": "user", "content": "Go"}
    (call,) = await create(user)
    assert (call["type"], call["arguments"]) == ("function_call", '{"a": 1}')
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
    (message,) = await create(user, call, result)
    assert message["content"][0]["text"] == "First."


async def test_all_choices_are_of_the_same_turn(script: Bench) -> None:
    history = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "x"}]
    answers = await chat(script, [*history, {"role": "user", "content": "And?"}], n=3)
    assert [answer["content"] for answer in answers] == ["First."] * 3
