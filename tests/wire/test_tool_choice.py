"""``tool_choice``: what the engine is held to, and what becomes of what the model writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.engines.port import GrammarSpec
from responsory.segments import Tool, answer_written, family
from responsory.segments.written import OwnGrammar, as_json
from wire.told import Told

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
GET: dict[str, Any] = {"name": "get", "parameters": SCHEMA}
PUT: dict[str, Any] = {"name": "put"}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": one} for one in (GET, PUT)],
    "responses": [{"type": "function", **one} for one in (GET, PUT)],
}
CALL = '<tool_call>\n{"name": "get", "arguments": {"city": "Oslo"}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "put", "arguments": {}}\n</tool_call>'
TALKS = ["chat", "responses"]
FORM = family("think+hermes")


def known(endpoint: str, *names: str) -> list[Tool]:
    """The tools as they are told on."""
    inner = ".function" if endpoint == "chat" else ""
    tools = [
        Tool("get", parameters=SCHEMA, place=f"tools[0]{inner}.parameters"),
        Tool("put", place=f"tools[1]{inner}.parameters"),
    ]
    return [tool for tool in tools if tool.name in names]


def named(endpoint: str, name: str) -> dict[str, Any]:
    inner = {"function": {"name": name}} if endpoint == "chat" else {"name": name}
    return {"type": "function", **inner}


def allowed(endpoint: str, mode: str, *names: str) -> dict[str, Any]:
    inner = {"mode": mode, "tools": [named(endpoint, name) for name in names]}
    nested = {"allowed_tools": inner} if endpoint == "chat" else inner
    return {"type": "allowed_tools", **nested}


def calls_of(endpoint: str, body: Any) -> list[tuple[str, str]]:
    if endpoint == "chat":
        message = body["choices"][0]["message"]
        functions = [call["function"] for call in message.get("tool_calls") or []]
    else:
        functions = [item for item in body["output"] if item["type"] == "function_call"]
    return [(each["name"], each["arguments"]) for each in functions]


async def form(app: Told, endpoint: str, **fields: Any) -> GrammarSpec | None:
    return (await app.asked(endpoint, **fields)).grammar


def lists(*tools: Tool, forced: bool, most: int | None = None) -> Any:
    return as_json(answer_written(FORM, tools, forced=forced, most=most))


@pytest.mark.wire("param:*.tool_choice.auto", "param:*.tool_choice.none")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_a_model_that_is_free_is_held_to_nothing(app: Told, endpoint: str) -> None:
    for choice in (None, "auto", "none"):
        assert await form(app, endpoint, tools=TOOLS[endpoint], tool_choice=choice) is None


@pytest.mark.wire("param:*.tool_choice.required", "P13")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_a_call_must_come(app: Told, endpoint: str) -> None:
    fields: dict[str, Any] = {"tools": TOOLS[endpoint], "tool_choice": "required"}
    spec = await form(app, endpoint, **fields)
    assert spec is not None
    assert (spec.kind, spec.closer) == ("calls", "</think>")
    assert json.loads(spec.text) == lists(*known(endpoint, "get", "put"), forced=True)
    spec = await form(app, endpoint, parallel_tool_calls=False, **fields)
    assert spec is not None
    assert json.loads(spec.text) == lists(*known(endpoint, "get", "put"), forced=True, most=1)
    body = await app.post(endpoint, says=CALL, **fields)
    assert calls_of(endpoint, body) == [("get", '{"city": "Oslo"}')]
    stream = await app.post(endpoint, says=CALL, stream=True, **fields)
    assert _streamed(endpoint, stream) == '{"city": "Oslo"}'


def _streamed(endpoint: str, stream: str) -> str:
    """The deltas of arguments, all together."""
    values = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    if endpoint == "responses":
        kind = "response.function_call_arguments.delta"
        return "".join(each["delta"] for each in values if each["type"] == kind)
    deltas = [choice["delta"] for value in values for choice in value["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    return "".join(call["function"].get("arguments", "") for call in calls)


@pytest.mark.wire("param:*.tool_choice.function")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_one_call_of_one_tool(app: Told, endpoint: str) -> None:
    fields: dict[str, Any] = {"tools": TOOLS[endpoint], "tool_choice": named(endpoint, "put")}
    spec = await form(app, endpoint, **fields)
    assert spec is not None
    assert json.loads(spec.text) == lists(*known(endpoint, "put"), forced=True, most=1)
    # The answer ends with it, whatever an engine would write behind it.
    body = await app.post(endpoint, says=OTHER + OTHER + "More.", **fields)
    assert calls_of(endpoint, body) == [("put", "{}")]


@pytest.mark.wire("param:*.tool_choice.allowed_tools", "S23")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_allowed_tools_are_a_hard_limit(app: Told, endpoint: str) -> None:
    for mode in ("auto", "required"):
        fields: dict[str, Any] = {
            "tools": TOOLS[endpoint],
            "tool_choice": allowed(endpoint, mode, "put"),
        }
        spec = await form(app, endpoint, **fields)
        assert spec is not None
        forced = mode == "required"
        assert json.loads(spec.text) == lists(*known(endpoint, "put"), forced=forced)
        # The prompt shows them all, so that it is the same whatever is allowed.
        assert '"get"' in app.prompter.decode(app.engine.requests[0].prompt.tolist())
        body = await app.post(endpoint, says=CALL + OTHER, **fields)
        assert calls_of(endpoint, body) == [("put", "{}")]


@pytest.mark.wire("param:*.tools")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_a_call_of_a_tool_that_is_not_declared_is_told_as_it_is(
    app: Told, endpoint: str
) -> None:
    """Whoever runs tools has to know that the model wants what is not there, to tell it so."""
    says = CALL.replace("get", "unknown_tool")
    body = await app.post(endpoint, says=says, tools=TOOLS[endpoint])
    assert calls_of(endpoint, body) == [("unknown_tool", '{"city": "Oslo"}')]


@pytest.mark.wire("param:*.tools")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_a_strict_tool_is_held_to_its_schema_without_being_forced(
    app: Told, endpoint: str
) -> None:
    strict = [{**GET, "strict": True}, PUT]
    tools = [
        {"type": "function", "function": one} if endpoint == "chat" else {"type": "function", **one}
        for one in strict
    ]
    spec = await form(app, endpoint, tools=tools)
    assert spec is not None
    get, put = known(endpoint, "get", "put")
    told = Tool("get", parameters=SCHEMA, strict=True, place=get.place)
    assert json.loads(spec.text) == lists(told, put, forced=False)
    # The thought is a text like any other then.
    assert (spec.opener, spec.closer) == ("", "")


@pytest.mark.wire("param:*.tools", "param:*.tool_choice.custom")
async def test_the_grammar_of_a_custom_tool(app: Told) -> None:
    rules = {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"}
    tool = {"type": "custom", "name": "t", "format": rules}
    spec = await form(app, "responses", tools=[tool])
    assert spec is not None
    told = Tool("t", "custom", grammar=OwnGrammar("regex", "[a-z]+", "tools[0].format"),
                place="tools[0].format")  # fmt: skip
    assert json.loads(spec.text) == lists(told, forced=False)


@pytest.mark.wire("param:*.tools")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_beside_a_form_of_the_text_a_call_may_come_instead(app: Told, endpoint: str) -> None:
    fields: dict[str, Any] = {"response_format": {"type": "json_object"}}
    if endpoint == "responses":
        fields = {"text": {"format": {"type": "json_object"}}}
    spec = await form(app, endpoint, tools=TOOLS[endpoint], **fields)
    assert spec is not None
    kind, (calls, text) = json.loads(spec.text)
    assert kind == "OneOf"
    assert calls == lists(*known(endpoint, "get", "put"), forced=True)
    assert text == ["JsonText", None, False, ""]
    spec = await form(app, endpoint, tools=TOOLS[endpoint], tool_choice="none", **fields)
    assert spec is not None
    assert spec.kind == "json_object"


@pytest.mark.wire("param:*.thinking_token_budget")
@pytest.mark.parametrize("endpoint", TALKS)
async def test_a_budget_of_thought_is_the_engines_to_keep(app: Told, endpoint: str) -> None:
    spec = await form(app, endpoint, thinking_token_budget=7)
    assert spec is not None
    assert (spec.kind, spec.budget) == ("any", 7)
    assert json.loads(spec.barred) == ["<think>"]
