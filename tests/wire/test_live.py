"""Nothing is held that need not be: what a step brought is sent, tools declared or not."""

from __future__ import annotations

from typing import Any

import pytest

from wire.stories import CALL, TOOLS, Story
from wire.told import Told

TEXT = Story("text", "stop")
CALLS = Story("calls", "stop")


@pytest.mark.wire("F7", "P24")
async def test_text_is_live_while_tools_are_declared(app: Told) -> None:
    """One delta a token: no token of this text can begin a marker."""
    events = await TEXT.events(app)
    deltas = [event["delta"] for event in events if "delta" in event]
    assert len(deltas) == len(app.engine.says)
    chat = await TEXT.chunks(app, "chat")
    told = [part["delta"] for chunk in chat for part in chunk["choices"]]
    assert [delta["content"] for delta in told if delta.get("content")] == deltas


@pytest.mark.wire("F7", "P24")
async def test_arguments_are_live(app: Told) -> None:
    events = await CALLS.events(app)
    arguments = [event for event in events if event["type"].endswith("arguments.delta")]
    first = [event for event in arguments if event["output_index"] == 1]
    spelled = app.prompter.text('{"a": 1, "deep": {"b": [2]}}', add_special_tokens=False)
    assert len(first) >= len(spelled) // 2
    assert len(first) > 3


@pytest.mark.wire("P16", "P11", "S9")
async def test_a_call_cut_anywhere_shows_no_markup(app: Told) -> None:
    """At every place: what is shown is the start of the arguments, in stream and body alike."""
    tokens = len(app.prompter.text(CALL, add_special_tokens=False))
    for limit in range(2, tokens):
        body = await app.post(
            "responses", says=CALL, max_output_tokens=limit, tools=TOOLS["responses"]
        )
        assert body["status"] == "incomplete"
        calls = [item for item in body["output"] if item["type"] == "function_call"]
        if calls:
            assert '{"a": 1, "deep": {"b": [2]}}'.startswith(calls[0]["arguments"])
            assert [item["type"] for item in body["output"]] == ["function_call"]
        chat = await app.post("chat", says=CALL, max_tokens=limit, tools=TOOLS["chat"])
        told = chat["choices"][0]["message"].get("tool_calls", [])
        assert [call["function"]["arguments"] for call in told] == [
            call["arguments"] for call in calls
        ]
        assert chat["choices"][0]["finish_reason"] == "length"


@pytest.mark.wire("F9", "F4")
@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
async def test_headers_and_bytes_of_a_stream(app: Told, endpoint: str) -> None:
    says = 'quotes " and \\ and é 你好 \u2028 \x1b'
    limit: dict[str, Any] = {"max_tokens": 99} if endpoint == "completions" else {}
    data = await app.post(endpoint, says=says, stream=True, **limit)
    headers = app.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"]
    assert "\r" not in data
    assert "é" in data
    assert "\u2028" in data
    assert "\\u001b" in data
    assert '": ' not in data.replace("data: {", "").replace('" and', "")
