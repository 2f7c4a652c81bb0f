"""One request as each endpoint writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ENDPOINTS = ("chat", "responses", "completions")
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "completions": "/v1/completions",
}
LIMITS = {
    "chat": "max_completion_tokens",
    "responses": "max_output_tokens",
    "completions": "max_tokens",
}
MANY = 2**19
"""Tokens: more than any case has. Completions have a limit of their own where none is asked for."""


def with_tools(
    endpoint: str, body: Mapping[str, Any], declared: Mapping[str, Any]
) -> dict[str, Any]:
    """The body with its tools written out: a case may give the names of declared ones."""
    if not body.get("tools"):
        return dict(body)
    tools = [
        _tool(endpoint, {"name": tool, **declared[tool]}) if isinstance(tool, str) else tool
        for tool in body["tools"]
    ]
    return {**body, "tools": tools}


def _tool(endpoint: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Chat nests, Responses does not."""
    kind = fields.get("type", "function")
    rest = {key: value for key, value in fields.items() if key != "type"}
    return {"type": kind, kind: rest} if endpoint == "chat" else {"type": kind, **rest}


def body_for(own: str, body: Mapping[str, Any], endpoint: str) -> dict[str, Any]:
    """A body of the endpoint ``own`` as ``endpoint`` has it. Completions are asked for the text
    alone, and have no tools."""
    fields = dict(body)
    if own == endpoint:
        return fields
    limit = fields.pop("max_tokens", fields.pop(LIMITS[own], None))
    if endpoint == "completions":
        kept: dict[str, Any] = {key: fields[key] for key in ("model", "stop") if key in fields}
        return {**kept, "prompt": "Go.", "max_tokens": limit or MANY}
    if limit is not None:
        fields[LIMITS[endpoint]] = limit
    if endpoint == "chat":
        said = fields.pop("input")
        fields["messages"] = [{"role": "user", "content": said}] if isinstance(said, str) else said
    else:
        fields["input"] = fields.pop("messages")
    if "tools" in fields:
        fields["tools"] = [_moved(own, tool) for tool in fields["tools"]]
    if isinstance(choice := fields.get("tool_choice"), dict):
        fields["tool_choice"] = _choice(own, choice)
    return fields


def _moved(own: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool, or what names one, in the other form."""
    if own == "chat":
        return {"type": tool["type"], **tool[tool["type"]]}
    return _tool("chat", tool)


def _choice(own: str, choice: Mapping[str, Any]) -> dict[str, Any]:
    if choice["type"] != "allowed_tools":
        return _moved(own, choice)
    inner = choice["allowed_tools"] if own == "chat" else choice
    tools = [_moved(own, tool) for tool in inner["tools"]]
    allowed = {"mode": inner["mode"], "tools": tools}
    if own == "chat":
        return {"type": "allowed_tools", **allowed}
    return {"type": "allowed_tools", "allowed_tools": allowed}
