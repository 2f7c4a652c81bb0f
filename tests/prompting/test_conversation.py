"""A history is the same list of messages, whichever endpoint it came through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.prompting.conversation import Message, chat_messages, response_messages
from antiphon.requests.chat import parse_chat
from antiphon.requests.responses import parse_response


def of_chat(*messages: dict[str, Any]) -> list[Message]:
    return chat_messages(parse_chat({"model": "m", "messages": list(messages)}).messages)


def of_response(*items: dict[str, Any], **fields: Any) -> list[Message]:
    return response_messages(parse_response({"model": "m", "input": list(items), **fields}))


def call(arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize("depth", [2, 199, 200, 201, 490, 990, 100_000])
def test_arguments_of_any_depth_are_shown(depth: int) -> None:
    """Beyond the depth of a body they are text: templates recurse through what they are given."""
    arguments = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    (message,) = of_chat({"role": "assistant", "tool_calls": [call(arguments)]})
    shown = message["tool_calls"][0]["function"]["arguments"]
    assert shown == (arguments if depth > 200 else json.loads(arguments))


def test_a_tool_turn_is_the_same_through_chat_and_responses() -> None:
    arguments = '{"city": "Oslo"}'
    through_chat = of_chat(
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Wea"}, {"type": "text", "text": "ther?"}],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [call(arguments)],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    )
    through_responses = of_response(
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        instructions="Be brief.",
    )
    assert through_chat == through_responses
    assert through_chat[0] == {"role": "system", "content": "Be brief."}
    assert through_chat[2]["tool_calls"][0]["function"]["arguments"] == {"city": "Oslo"}


def test_calls_without_text_share_one_assistant_message() -> None:
    items = [
        {"type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"}
        for i in range(2)
    ]
    history = of_response({"role": "user", "content": "x"}, *items)
    assert [message["role"] for message in history] == ["user", "assistant"]
    assert [made["id"] for made in history[1]["tool_calls"]] == ["c0", "c1"]


def test_reasoning_belongs_to_what_follows_it() -> None:
    thought = {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    made = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    history = of_response({"role": "user", "content": "x"}, thought, made)
    assert history[1]["reasoning_content"] == "Hm."
    history = of_response(thought, {"role": "user", "content": "x"})
    assert "reasoning_content" not in history[0]


@pytest.mark.parametrize(
    "arguments",
    ["", "not json", "[1]", "1", "{", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000],
)
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    (message,) = of_chat({"role": "assistant", "tool_calls": [call(arguments)]})
    assert message["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_phase_reaches_the_template() -> None:
    (message,) = of_response({"role": "assistant", "content": "x", "phase": "commentary"})
    assert message["phase"] == "commentary"
