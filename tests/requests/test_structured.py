"""Structured output: one constraint from seven places, and what excludes what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from antiphon.errors import InvalidRequest
from antiphon.requests.chat import parse_chat
from antiphon.requests.completions import parse_completion
from antiphon.requests.generation import GenerationRequest
from antiphon.requests.responses import parse_response, resource_tail
from antiphon.requests.structured import Constraint

SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
TEXT = '{"type":"object","properties":{"é":{"type":"integer"}}}'
NAMED = {"name": "out", "schema": SCHEMA}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def chat(**fields: Any) -> GenerationRequest:
    return parse_chat({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields})


def completions(**fields: Any) -> GenerationRequest:
    return parse_completion({"model": "m", "prompt": "x", **fields})


def responses(**fields: Any) -> GenerationRequest:
    return parse_response({"model": "m", "input": "x", **fields})


PARSE = {"chat": chat, "completions": completions, "responses": responses}

# (param, value, kind, text, where it stands)
ANYWHERE: list[tuple[str, Any, str, str, str]] = [
    ("structured_outputs", {"json": SCHEMA}, "json_schema", TEXT, "structured_outputs.json"),
    ("structured_outputs", {"json": TEXT}, "json_schema", TEXT, "structured_outputs.json"),
    ("structured_outputs", {"regex": "a+"}, "regex", "a+", "structured_outputs.regex"),
    ("structured_outputs", {"choice": ["a", "é"]}, "choice", '["a","é"]',
     "structured_outputs.choice"),
    ("structured_outputs", {"grammar": 'root ::= "a"'}, "gbnf", 'root ::= "a"',
     "structured_outputs.grammar"),
    ("structured_outputs", {"json_object": True, "regex": None}, "json_object", "",
     "structured_outputs.json_object"),
    ("regex", "[0-9]+", "regex", "[0-9]+", "regex"),
    ("json_schema", TEXT, "json_schema", TEXT, "json_schema"),
    ("ebnf", 'root ::= "a"', "gbnf", 'root ::= "a"', "ebnf"),
]  # fmt: skip
FORMATS = [
    ("response_format", {"type": "json_object"}, "json_object", "", "response_format.type"),
    ("response_format", {"type": "json_schema", "json_schema": NAMED}, "json_schema", TEXT,
     "response_format.json_schema.schema"),
]  # fmt: skip
TEXT_FORMATS = [
    ("text", {"format": {"type": "json_object"}}, "json_object", "", "text.format.type"),
    ("text", {"format": {"type": "json_schema", **NAMED}}, "json_schema", TEXT,
     "text.format.schema"),
]  # fmt: skip
CONSTRAINED = [
    pytest.param(endpoint, *line, id=f"{endpoint}-{line[4]}-{type(line[1]).__name__}{index}")
    for endpoint in PARSE
    for index, line in enumerate(
        [*ANYWHERE, *(TEXT_FORMATS if endpoint == "responses" else FORMATS)]
    )
]


@pytest.mark.parametrize(("endpoint", "field", "value", "kind", "text", "param"), CONSTRAINED)
def test_accepted(endpoint: str, field: str, value: Any, kind: Any, text: str, param: str) -> None:
    request = PARSE[endpoint](**{field: value})
    assert request.constraint == Constraint(kind=kind, text=text, param=param)


@pytest.mark.parametrize("endpoint", PARSE)
def test_free_text_is_no_constraint(endpoint: str) -> None:
    free = {"type": "text"}
    fields = {"text": {"format": free}} if endpoint == "responses" else {"response_format": free}
    assert PARSE[endpoint](**fields).constraint is None
    assert PARSE[endpoint]().constraint is None


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("structured_outputs", {"structured_outputs": {}}, "invalid_value", "structured_outputs"),
    ("structured_outputs", {"structured_outputs": {"json_object": False}}, "invalid_value",
     "structured_outputs"),
    ("structured_outputs", {"structured_outputs": {"regex": "a", "choice": ["a"]}},
     "conflicting_parameters", "structured_outputs.choice"),
    ("structured_outputs", {"structured_outputs": {"structural_tag": "x"}},
     "unsupported_parameter", "structured_outputs.structural_tag"),
    ("structured_outputs", {"structured_outputs": {"choice": []}}, "empty_array",
     "structured_outputs.choice"),
    ("structured_outputs", {"structured_outputs": {"choice": [1]}}, "invalid_type",
     "structured_outputs.choice[0]"),
    ("structured_outputs", {"structured_outputs": {"json": "{"}}, "invalid_schema",
     "structured_outputs.json"),
    ("structured_outputs", {"structured_outputs": {"json": [1]}}, "invalid_type",
     "structured_outputs.json"),
    ("regex", {"regex": ""}, "invalid_value", "regex"),
    ("regex", {"regex": 5}, "invalid_type", "regex"),
    ("regex", {"regex": "a", "structured_outputs": {"regex": "a"}}, "conflicting_parameters",
     "regex"),
    ("json_schema", {"json_schema": "[1]"}, "invalid_schema", "json_schema"),
    ("json_schema", {"json_schema": "[" * 100_000}, "invalid_schema", "json_schema"),
    ("json_schema", {"json_schema": SCHEMA}, "invalid_type", "json_schema"),
    ("json_schema", {"json_schema": "{}", "regex": "a"}, "conflicting_parameters", "json_schema"),
    ("ebnf", {"ebnf": 5}, "invalid_type", "ebnf"),
    ("ebnf", {"ebnf": "x", "json_schema": "{}"}, "conflicting_parameters", "ebnf"),
]  # fmt: skip
OF_FORMATS: list[tuple[str, dict[str, Any], str, str]] = [
    ("response_format", {"response_format": {}}, "missing_required_parameter",
     "response_format.type"),
    ("response_format", {"response_format": {"type": "structural_tag"}}, "unsupported_value",
     "response_format.type"),
    ("response_format", {"response_format": {"type": "json_schema"}},
     "missing_required_parameter", "response_format.json_schema"),
    ("response_format", {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
     "missing_required_parameter", "response_format.json_schema.schema"),
    ("response_format",
     {"response_format": {"type": "json_schema", "json_schema": {**NAMED, "name": "a b"}}},
     "invalid_value", "response_format.json_schema.name"),
    ("response_format",
     {"response_format": {"type": "json_schema", "json_schema": {**NAMED, "strict": "yes"}}},
     "invalid_type", "response_format.json_schema.strict"),
    ("response_format",
     {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
     "conflicting_parameters", "structured_outputs"),
    ("response_format", {"response_format": {"type": "json_object"}, "ebnf": "a"},
     "conflicting_parameters", "ebnf"),
]  # fmt: skip
OF_TEXT: list[tuple[str, dict[str, Any], str, str]] = [
    ("text.format", {"text": {"format": {}}}, "missing_required_parameter", "text.format.type"),
    ("text.format", {"text": {"format": {"type": "xml"}}}, "unsupported_value", "text.format.type"),
    ("text.format", {"text": {"format": {"type": "json_schema", "name": "a"}}},
     "missing_required_parameter", "text.format.schema"),
    ("text.format", {"text": {"format": {"type": "json_object"}}, "regex": "a"},
     "conflicting_parameters", "regex"),
]  # fmt: skip
REFUSALS = [
    pytest.param(endpoint, *line[1:], id=f"{endpoint}-{line[0]}-{line[2]}{index}")
    for endpoint in PARSE
    for index, line in enumerate([*REFUSED, *(OF_TEXT if endpoint == "responses" else OF_FORMATS)])
]


@pytest.mark.parametrize(("endpoint", "fields", "code", "param"), REFUSALS)
def test_refused(endpoint: str, fields: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        PARSE[endpoint](**fields)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    "choice",
    [
        "required",
        {"type": "function", "function": {"name": "f"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": TOOLS},
        },
    ],
    ids=["required", "named", "allowed"],
)
def test_forced_call_excludes_a_constraint(choice: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        chat(tools=TOOLS, tool_choice=choice, regex="a")
    assert (caught.value.code, caught.value.param) == ("conflicting_parameters", "tool_choice")
    assert chat(tools=TOOLS, tool_choice="auto", regex="a").constraint is not None


def test_format_is_echoed_by_the_resource() -> None:
    request = parse_response(
        {"model": "m", "input": "x", "text": {"format": {"type": "json_schema", **NAMED}}}
    )
    assert resource_tail(request)["text"] == {
        "format": {
            "type": "json_schema",
            "name": "out",
            "description": None,
            "schema": json.loads(TEXT),
            "strict": None,
        }
    }
