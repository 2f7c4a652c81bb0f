"""Tools that take text: declared, called, sent back and refused, the same on both endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from wire.told import Told

PATCH = {"name": "patch", "description": "Applies it."}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "custom", "custom": PATCH}],
    "responses": [{"type": "custom", **PATCH}],
}
SAYS = 'Now.<tool_call>\n{"name": "patch", "arguments": {"input": "a\\n\\"b\\""}}\n</tool_call>'
INPUT = 'a\n"b"'
USER = {"role": "user", "content": "hi"}


@pytest.mark.wire("param:*.tools", "S15")
async def test_a_call_gives_its_input_as_text(app: Told) -> None:
    body = await app.post("responses", says=SAYS, tools=TOOLS["responses"])
    message, call = body["output"]
    assert message["content"][0]["text"] == "Now."
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "patch", INPUT)
    assert (call["status"], call["id"].partition("_")[0]) == ("completed", "ctc")
    assert body["tools"] == [{"type": "custom", **PATCH, "format": {"type": "text"}}]
    body = await app.post("chat", says=SAYS, tools=TOOLS["chat"])
    (choice,) = body["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert (call["type"], call["custom"]) == ("custom", {"name": "patch", "input": INPUT})
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Now.")


@pytest.mark.wire("param:*.tools")
async def test_it_is_shown_as_a_function_of_one_string(app: Told) -> None:
    shown = {await app.prompt(endpoint, tools=tools) for endpoint, tools in TOOLS.items()}
    (prompt,) = shown
    assert '"name": "patch"' in prompt
    assert '"required": ["input"]' in prompt


@pytest.mark.wire(
    "param:responses.input.custom_tool_call", "param:responses.input.custom_tool_call_output", "S25"
)
async def test_a_call_and_its_output_are_the_same_from_both_endpoints(app: Told) -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": INPUT}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}
    responses = await app.prompt("responses", input=[USER, call, output])
    said = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": INPUT}}
    chat = await app.prompt(
        "chat",
        messages=[
            USER,
            {"role": "assistant", "tool_calls": [said]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
    )
    assert chat == responses
    assert "<tool:done>" in chat
    refused = await app.refused("responses", input=[USER, {**output, "call_id": "c2"}])
    assert refused == ("input[1].call_id", "invalid_function_call_output")


GRAMMARS: dict[str, dict[str, Any]] = {
    "chat": {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "a"'}},
    "responses": {"type": "grammar", "syntax": "lark", "definition": 'start: "a"'},
}


@pytest.mark.wire("param:*.tools", "param:*.tool_choice.custom")
async def test_what_would_have_to_be_held_to_is_refused_where_it_cannot(free: Told) -> None:
    rules: dict[str, Any]
    for endpoint, rules in GRAMMARS.items():
        inside = {**PATCH, "format": rules}
        flat = endpoint == "responses"
        tool = {"type": "custom", **inside} if flat else {"type": "custom", "custom": inside}
        place = "tools[0].format" if flat else "tools[0].custom.format"
        assert await free.refused(endpoint, tools=[tool]) == (place, "unsupported_value")
        named = {"name": "patch"} if flat else {"custom": {"name": "patch"}}
        forced = {"type": "custom", **named}
        assert await free.refused(endpoint, tools=TOOLS[endpoint], tool_choice=forced) == (
            "tool_choice",
            "unsupported_value",
        )


@pytest.mark.wire("param:*.tool_choice.custom", "error:invalid_value")
async def test_a_choice_names_a_tool_of_its_type(app: Told) -> None:
    for endpoint, choice, place in (
        ("chat", {"type": "function", "function": {"name": "patch"}}, "function.name"),
        ("chat", {"type": "custom", "custom": {"name": "other"}}, "custom.name"),
        ("responses", {"type": "function", "name": "patch"}, "name"),
        ("responses", {"type": "custom", "name": "other"}, "name"),
    ):
        refused = await app.refused(endpoint, tools=TOOLS[endpoint], tool_choice=choice)
        assert refused == (f"tool_choice.{place}", "invalid_value")


@pytest.mark.wire("param:*.tools", "error:invalid_schema")
async def test_arguments_are_an_object(app: Told) -> None:
    wrong = {"name": "f", "parameters": {"type": "array"}}
    flat, nested = {"type": "function", **wrong}, {"type": "function", "function": wrong}
    assert await app.refused("responses", tools=[flat]) == (
        "tools[0].parameters",
        "invalid_schema",
    )
    assert await app.refused("chat", tools=[nested]) == (
        "tools[0].function.parameters",
        "invalid_schema",
    )
