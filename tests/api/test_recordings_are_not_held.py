"""A recording plays as it is, whatever its answer is asked to be held to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.engines.recording import load_recordings
from api.conftest import FIXTURES, Bench

RECORDINGS = sorted(name for name in load_recordings(FIXTURES) if "/hold" not in name)
"""Those that end."""
FUNCTION: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"depth": {"type": "integer"}}},
}
GRAMMAR: dict[str, Any] = {"syntax": "lark", "definition": "start: /[0-9]+/"}
ASKED: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
}


def tools(path: str, *, strict: bool) -> list[dict[str, Any]]:
    function = {**FUNCTION, "strict": strict}
    if path == "responses":
        custom = {"format": {"type": "grammar", **GRAMMAR}} if strict else {}
        return [{"type": "function", **function}, {"type": "custom", "name": "say", **custom}]
    custom = {"format": {"type": "grammar", "grammar": GRAMMAR}} if strict else {}
    return [
        {"type": "function", "function": function},
        {"type": "custom", "custom": {"name": "say", **custom}},
    ]


async def answer(bench: Bench, path: str, **fields: Any) -> tuple[int, Any]:
    """The status, and what was said without its ids."""
    response = await bench.client.post(f"/v1/{path}", json={**ASKED[path], **fields})
    body = json.loads(await response.get_data(as_text=False))
    said = body.get("output") or body.get("choices") or body
    return response.status_code, without_ids(said)


def without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [without_ids(one) for one in value]
    if isinstance(value, dict):
        named = {key: one for key, one in value.items() if key not in ("id", "call_id")}
        return {key: without_ids(one) for key, one in named.items()}
    return value


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("recording", RECORDINGS)
async def test_it_says_what_it_says_unasked(bench: Bench, path: str, recording: str) -> None:
    for more in ({}, {"separate_reasoning": False}):
        free = await answer(bench, path, model=recording, tools=tools(path, strict=False), **more)
        assert free[0] in (200, 500)
        held = tools(path, strict=True)
        for choice in ("auto", "required"):
            fields = {"tools": held, "tool_choice": choice, **more}
            assert await answer(bench, path, model=recording, **fields) == free
