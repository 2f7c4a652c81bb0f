"""Tools as Chat (nested) and Responses (flat) declare them: functions, and those that take text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length, Offered, Pattern
from antiphon.requests.tool_schema import fault_in

FunctionName = Annotated[str, Pattern(r"[A-Za-z0-9_-]{1,64}")]
ToolType = Annotated[str, Offered(("function", "custom"))]
Syntax = Literal["lark", "regex"]


@attrs.define(kw_only=True)
class FunctionTool:
    """A tool of ``/v1/responses``."""

    type: Literal["function"]
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


@attrs.define(kw_only=True)
class FreeText:
    """The input of a custom tool is any text."""

    type: Literal["text"] = "text"


@attrs.define(kw_only=True)
class GrammarText:
    """The input of a custom tool holds to a grammar, as Responses writes it."""

    type: Literal["grammar"]
    syntax: Syntax
    definition: Annotated[str, Length(1)]


@attrs.define(kw_only=True)
class CustomTool:
    """A tool of ``/v1/responses`` that takes text."""

    type: Literal["custom"]
    name: FunctionName
    description: str | None = None
    format: FreeText | GrammarText = attrs.field(factory=FreeText)


@attrs.define(kw_only=True)
class Function:
    """The inside of a chat tool."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


@attrs.define(kw_only=True)
class ChatTool:
    """A tool of ``/v1/chat/completions``."""

    type: Literal["function"]
    function: Function


@attrs.define(kw_only=True)
class ChatGrammar:
    """The inside of a chat tool's grammar."""

    syntax: Syntax
    definition: Annotated[str, Length(1)]


@attrs.define(kw_only=True)
class ChatGrammarText:
    """The input of a custom tool holds to a grammar, as chat writes it."""

    type: Literal["grammar"]
    grammar: ChatGrammar


@attrs.define(kw_only=True)
class Custom:
    """The inside of a chat tool that takes text."""

    name: FunctionName
    description: str | None = None
    format: FreeText | ChatGrammarText = attrs.field(factory=FreeText)


@attrs.define(kw_only=True)
class ChatCustomTool:
    """A tool of ``/v1/chat/completions`` that takes text."""

    type: Literal["custom"]
    custom: Custom


AnyTool = FunctionTool | CustomTool | ChatTool | ChatCustomTool


@attrs.frozen(kw_only=True)
class DeclaredTool:
    """A tool of either endpoint, as one value.

    ``grammar``: syntax and definition. ``place``: where its schema or its grammar stands in the
    request; ``named``: where its name does.
    """

    custom: bool
    name: str
    description: str | None
    parameters: dict[str, Any] | None = None
    strict: bool = False
    grammar: tuple[Syntax, str] | None = None
    place: str
    named: str


def declared(tools: Sequence[AnyTool]) -> list[DeclaredTool]:
    """The tools of a request, in order."""
    return [_declared(tool, f"tools[{index}]") for index, tool in enumerate(tools)]


def _declared(tool: AnyTool, at: str) -> DeclaredTool:
    match tool:
        case ChatTool(function=function):
            at = f"{at}.function"
            return _function(function, at)
        case FunctionTool():
            return _function(tool, at)
        case ChatCustomTool(custom=custom):
            at = f"{at}.custom"
            inner = custom.format
            rules = inner.grammar if isinstance(inner, ChatGrammarText) else None
            return _custom(custom, at, rules)
        case _:
            return _custom(tool, at, tool.format if isinstance(tool.format, GrammarText) else None)


def _function(function: Function | FunctionTool, at: str) -> DeclaredTool:
    return DeclaredTool(
        custom=False,
        name=function.name,
        description=function.description,
        parameters=function.parameters,
        strict=bool(function.strict),
        place=f"{at}.parameters",
        named=f"{at}.name",
    )


def _custom(
    tool: Custom | CustomTool, at: str, rules: ChatGrammar | GrammarText | None
) -> DeclaredTool:
    return DeclaredTool(
        custom=True,
        name=tool.name,
        description=tool.description,
        grammar=None if rules is None else (rules.syntax, rules.definition),
        place=f"{at}.format",
        named=f"{at}.name",
    )


def check_tools(tools: Sequence[DeclaredTool]) -> None:
    """Names are unique, and schemas are JSON Schemas of objects. Raises ``InvalidRequest``."""
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidRequest(
                f"Two tools are named '{tool.name}'.", code="invalid_value", param=tool.named
            )
        seen.add(tool.name)
        if tool.parameters and (fault := fault_in(tool.parameters)):
            raise InvalidRequest(
                f"The parameters of '{tool.name}' are no JSON Schema of an object: {fault}.",
                code="invalid_schema",
                param=tool.place,
            )
