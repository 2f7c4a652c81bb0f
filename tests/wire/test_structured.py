"""One constraint on the text, whichever parameter asks for it; refused where it cannot be kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire.told import Told

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
SPELLED = json.dumps(SCHEMA, separators=(",", ":"))
NAMED = {"name": "x", "schema": SCHEMA, "strict": True}
EVERYWHERE = ("chat", "completions", "responses")


def constraint(
    row: str, fields: dict[str, Any], kind: str, text: str, param: str, *endpoints: str
) -> list[Any]:
    return [
        pytest.param(
            endpoint, fields, kind, text, param,
            marks=pytest.mark.wire(f"param:{endpoint}.{row}"), id=f"{endpoint}-{row}",
        )
        for endpoint in endpoints or EVERYWHERE
    ]  # fmt: skip


def outputs(name: str, value: Any, kind: str, text: str) -> list[Any]:
    param = f"structured_outputs.{name}"
    return constraint(param, {"structured_outputs": {name: value}}, kind, text, param)


CHUNKED = ("chat", "completions")
CONSTRAINTS = [
    *outputs("json", SCHEMA, "json_schema", SPELLED),
    *outputs("json", SPELLED, "json_schema", SPELLED),
    *outputs("regex", "[a-z]+", "regex", "[a-z]+"),
    *outputs("choice", ["yes", "né"], "choice", '["yes","né"]'),
    *outputs("grammar", 'root ::= "a"', "gbnf", 'root ::= "a"'),
    *outputs("json_object", True, "json_object", ""),
    *constraint("regex", {"regex": "a|b"}, "regex", "a|b", "regex"),
    *constraint("json_schema", {"json_schema": SPELLED}, "json_schema", SPELLED, "json_schema"),
    *constraint("ebnf", {"ebnf": 'root ::= "a"'}, "gbnf", 'root ::= "a"', "ebnf"),
    *constraint(
        "response_format.json_object", {"response_format": {"type": "json_object"}},
        "json_object", "", "response_format.type", *CHUNKED,
    ),
    *constraint(
        "response_format.json_schema",
        {"response_format": {"type": "json_schema", "json_schema": NAMED}},
        "json_schema", SPELLED, "response_format.json_schema.schema", *CHUNKED,
    ),
    *constraint(
        "text.format.json_object", {"text": {"format": {"type": "json_object"}}},
        "json_object", "", "text.format.type", "responses",
    ),
    *constraint(
        "text.format.json_schema", {"text": {"format": {"type": "json_schema", **NAMED}}},
        "json_schema", SPELLED, "text.format.schema", "responses",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("endpoint", "fields", "kind", "text", "param"), CONSTRAINTS)
async def test_it_reaches_an_engine_that_can_be_held_to_it(
    app: Told, endpoint: str, fields: dict[str, Any], kind: str, text: str, param: str
) -> None:
    grammar = (await app.asked(endpoint, **fields)).grammar
    assert grammar is not None
    assert (grammar.kind, grammar.text) == (kind, text)


@pytest.mark.parametrize(("endpoint", "fields", "kind", "text", "param"), CONSTRAINTS)
async def test_another_engine_is_not_asked(
    free: Told, endpoint: str, fields: dict[str, Any], kind: str, text: str, param: str
) -> None:
    assert await free.refused(endpoint, **fields) == (param, "unsupported_value")


@pytest.mark.wire(
    "param:*.response_format.text",
    "param:responses.text.format.text",
    "error:conflicting_parameters",
)
async def test_free_text_is_no_constraint_and_two_exclude_each_other(free: Told) -> None:
    for endpoint, fields in (
        ("chat", {"response_format": {"type": "text"}}),
        ("completions", {"response_format": {"type": "text"}}),
        ("responses", {"text": {"format": {"type": "text"}}}),
    ):
        assert (await free.asked(endpoint, **fields)).grammar is None
        assert await free.refused(endpoint, **fields, regex="a", ebnf="b") == (
            "ebnf",
            "conflicting_parameters",
        )


@pytest.mark.wire("error:invalid_schema")
@pytest.mark.parametrize("text", ["{", "1", '"x"', "[" * 100_000])
@pytest.mark.parametrize("endpoint", EVERYWHERE)
async def test_what_is_no_schema(app: Told, endpoint: str, text: str) -> None:
    assert await app.refused(endpoint, json_schema=text) == ("json_schema", "invalid_schema")


TOOL = {"type": "function", "name": "f"}
NESTED = {"type": "function", "function": {"name": "f"}}
TEXT = {"type": "custom", "name": "t"}
NESTED_TEXT = {"type": "custom", "custom": {"name": "t"}}
CHOICES = [
    ("required", "required", "required"),
    ("function", NESTED, TOOL),
    ("custom", NESTED_TEXT, TEXT),
    (
        "allowed_tools",
        {"type": "allowed_tools",
         "allowed_tools": {"mode": "auto", "tools": [NESTED]}},
        {"type": "allowed_tools", "mode": "auto", "tools": [TOOL]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("chat", "responses"),
    [
        pytest.param(
            chat, responses, marks=pytest.mark.wire(f"param:*.tool_choice.{name}"), id=name
        )
        for name, chat, responses in CHOICES
    ],
)
async def test_a_forced_call_needs_an_engine_that_can_be_held_to_it(
    free: Told, formal: Told, chat: Any, responses: Any
) -> None:
    nested = {"tools": [NESTED, NESTED_TEXT], "tool_choice": chat}
    flat = {"tools": [TOOL, TEXT], "tool_choice": responses}
    for app in (free, formal):
        assert await app.refused("chat", **nested) == ("tool_choice", "unsupported_value")
        assert await app.refused("responses", **flat) == ("tool_choice", "unsupported_value")


async def test_arguments_are_held_to_a_schema_by_an_engine_that_can(formal: Told) -> None:
    strict = {"strict": True, "parameters": {"type": "object"}}
    nested = {"type": "function", "function": {"name": "g", **strict}}
    assert await formal.refused("chat", tools=[NESTED, nested]) == (
        "tools[1].function.strict",
        "unsupported_value",
    )
    assert await formal.refused("responses", tools=[{**TOOL, **strict}]) == (
        "tools[0].strict",
        "unsupported_value",
    )
    rules = {"syntax": "regex", "definition": "[a-z]+"}
    assert await formal.refused(
        "responses", tools=[TOOL, {**TEXT, "format": {"type": "grammar", **rules}}]
    ) == ("tools[1].format", "unsupported_value")
    custom = {"name": "t", "format": {"type": "grammar", "grammar": rules}}
    assert await formal.refused("chat", tools=[{"type": "custom", "custom": custom}]) == (
        "tools[0].custom.format",
        "unsupported_value",
    )
