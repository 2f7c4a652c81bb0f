"""Tools and their choice, in chat's nested form and in the flat one of Responses."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.errors import InvalidRequest
from antiphon.requests.chat import ChatRequest, parse_chat
from antiphon.requests.responses import ResponseRequest, parse_response, resource_tail
from antiphon.requests.tool_choice import ToolChoice

NESTED = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
FLAT = [{"type": "function", "name": name} for name in ("f", "g")]
NAMED_NESTED = {"type": "function", "function": {"name": "g"}}
NAMED_FLAT = {"type": "function", "name": "g"}


def allowed_nested(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def allowed_flat(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


def parsed(endpoint: str, **fields: Any) -> ChatRequest | ResponseRequest:
    if endpoint == "chat":
        said = [{"role": "user", "content": "x"}]
        return parse_chat({"model": "m", "messages": said, "tools": NESTED, **fields})
    return parse_response({"model": "m", "input": "x", "tools": FLAT, **fields})


FORMS = [
    ("none", "none", ToolChoice(mode="none")),
    ("auto", "auto", ToolChoice(mode="auto")),
    ("required", "required", ToolChoice(mode="required")),
    (NAMED_NESTED, NAMED_FLAT, ToolChoice(mode="named", names=("g",))),
    (
        allowed_nested("auto", *NESTED),
        allowed_flat("auto", *FLAT),
        ToolChoice(mode="auto", names=("f", "g")),
    ),
    (
        allowed_nested("required", NAMED_NESTED),
        allowed_flat("required", NAMED_FLAT),
        ToolChoice(mode="required", names=("g",)),
    ),
]
NAMES = ["none", "auto", "required", "function", "allowed_tools-auto", "allowed_tools-required"]


@pytest.mark.parametrize(
    ("endpoint", "raw", "choice"),
    [
        pytest.param(endpoint, forms[which], forms[2], id=f"{endpoint}-tool_choice-{name}")
        for which, endpoint in enumerate(("chat", "responses"))
        for name, forms in zip(NAMES, FORMS, strict=True)
    ],
)
def test_accepted(endpoint: str, raw: Any, choice: ToolChoice) -> None:
    request = parsed(endpoint, tool_choice=raw)
    assert request.choice == choice
    assert choice.forced == (choice.mode in ("required", "named"))
    if isinstance(request, ResponseRequest):
        assert resource_tail(request)["tool_choice"] == raw


OTHER = {"type": "function", "function": {"name": "h"}}
OTHER_FLAT = {"type": "function", "name": "h"}
NO_TOOLS: list[Any] = [[], None]
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    *(
        (endpoint, {"tool_choice": value}, code, param)
        for endpoint in ("chat", "responses")
        for value, code, param in (
            ("any", "invalid_value", "tool_choice"),
            (1, "invalid_type", "tool_choice"),
            ({}, "missing_required_parameter", "tool_choice.type"),
            ({"type": "web_search"}, "unsupported_value", "tool_choice.type"),
        )
    ),
    *(
        (endpoint, {"tools": tools, "tool_choice": value}, "invalid_value", "tool_choice")
        for tools in NO_TOOLS
        for endpoint, value in (
            ("chat", "required"),
            ("chat", NAMED_NESTED),
            ("chat", allowed_nested("auto", NAMED_NESTED)),
            ("responses", "required"),
            ("responses", NAMED_FLAT),
            ("responses", allowed_flat("auto", NAMED_FLAT)),
        )
    ),
    ("chat", {"tool_choice": OTHER}, "invalid_value", "tool_choice.function.name"),
    ("responses", {"tool_choice": OTHER_FLAT}, "invalid_value", "tool_choice.name"),
    ("chat", {"tool_choice": allowed_nested("auto", NAMED_NESTED, OTHER)}, "invalid_value",
     "tool_choice.allowed_tools.tools[1].function.name"),
    ("responses", {"tool_choice": allowed_flat("auto", NAMED_FLAT, OTHER_FLAT)}, "invalid_value",
     "tool_choice.tools[1].name"),
    ("chat", {"tool_choice": allowed_nested("auto")}, "empty_array",
     "tool_choice.allowed_tools.tools"),
    ("responses", {"tool_choice": allowed_flat("auto")}, "empty_array", "tool_choice.tools"),
    ("responses", {"tool_choice": allowed_flat("auto", *[NAMED_FLAT] * 129)},
     "array_above_max_length", "tool_choice.tools"),
    ("responses", {"tool_choice": allowed_flat("none", NAMED_FLAT)}, "invalid_value",
     "tool_choice.mode"),
    ("responses", {"tool_choice": allowed_flat("auto", {"type": "mcp", "name": "g"})},
     "unsupported_value", "tool_choice.tools[0].type"),
    ("chat", {"tool_choice": {"type": "function", "name": "g"}}, "missing_required_parameter",
     "tool_choice.function"),
    ("chat", {"tools": [NESTED[0], NESTED[0]]}, "invalid_value", "tools[1].function.name"),
    ("responses", {"tools": [FLAT[0], FLAT[0]]}, "invalid_value", "tools[1].name"),
    ("chat", {"tools": [{"type": "mcp", "mcp": {}}]}, "unsupported_value", "tools[0].type"),
    ("responses", {"tools": [FLAT[0], {"type": "web_search"}]}, "unsupported_value",
     "tools[1].type"),
    ("chat", {"tools": [{"function": {"name": "f"}}]}, "missing_required_parameter",
     "tools[0].type"),
    ("chat", {"tools": [{"type": "function", "function": {"name": "a b"}}]}, "invalid_value",
     "tools[0].function.name"),
    ("responses", {"tools": [{**FLAT[0], "parameters": []}]}, "invalid_type",
     "tools[0].parameters"),
    ("responses", {"tools": [{**FLAT[0], "strict": 1}]}, "invalid_type", "tools[0].strict"),
    ("responses", {"tools": [{**FLAT[0], "name": f"f{i}"} for i in range(129)]},
     "array_above_max_length", "tools"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "fields", "code", "param"),
    [
        pytest.param(*case, id=f"{case[0]}-{case[3]}-{case[2]}{index}")
        for index, case in enumerate(REFUSED)
    ],
)
def test_refused(endpoint: str, fields: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parsed(endpoint, **fields)
    assert (caught.value.code, caught.value.param) == (code, param)


def test_strict_and_schema_of_a_tool_are_kept() -> None:
    tool = {**FLAT[0], "description": "d", "parameters": {"type": "object"}, "strict": True}
    request = parsed("responses", tools=[tool])
    assert isinstance(request, ResponseRequest)
    assert resource_tail(request)["tools"] == [tool]
