"""``tool_choice``: as chat and Responses write it, and as one value.

Chat nests (``{"type": "function", "function": {"name": …}}``), Responses does not
(``{"type": "function", "name": …}``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length
from antiphon.requests.tools import DeclaredTool, FunctionName, ToolType

Word = Literal["none", "auto", "required"]
AllowedMode = Literal["auto", "required"]


@attrs.frozen(kw_only=True)
class ToolChoice:
    """Which calls an answer may and must have.

    ``none``: no calls, and tools are not shown. ``auto``: the model decides. ``required``: at
    least one call. ``named``: one call of the one tool in ``names``. With ``auto`` and
    ``required``, ``names`` limits what can be called; empty means every tool of the request.
    """

    mode: Literal["none", "auto", "required", "named"]
    names: tuple[str, ...] = ()

    @property
    def forced(self) -> bool:
        """Whether an answer without a call is excluded."""
        return self.mode in ("required", "named")


@attrs.define(kw_only=True)
class NamedTool:
    """Responses: exactly this tool."""

    type: Literal["function", "custom"]
    name: FunctionName


@attrs.define(kw_only=True)
class AllowedTool:
    """Responses: one of the allowed tools."""

    type: ToolType
    name: FunctionName


@attrs.define(kw_only=True)
class AllowedTools:
    """Responses: only these functions."""

    type: Literal["allowed_tools"]
    mode: AllowedMode
    tools: Annotated[list[AllowedTool], Length(1, 128)]


@attrs.define(kw_only=True)
class FunctionReference:
    """Chat: a function by its name."""

    name: FunctionName


@attrs.define(kw_only=True)
class ChatNamedTool:
    """Chat: exactly this function."""

    type: Literal["function"]
    function: FunctionReference


@attrs.define(kw_only=True)
class ChatNamedCustom:
    """Chat: exactly this custom tool."""

    type: Literal["custom"]
    custom: FunctionReference


@attrs.define(kw_only=True)
class ChatAllowedFunction:
    """Chat: one of the allowed tools, a function."""

    type: Literal["function"]
    function: FunctionReference


@attrs.define(kw_only=True)
class ChatAllowedCustom:
    """Chat: one of the allowed tools, a custom one."""

    type: Literal["custom"]
    custom: FunctionReference


@attrs.define(kw_only=True)
class ChatAllowedList:
    """The inside of chat's ``allowed_tools``."""

    mode: AllowedMode
    tools: Annotated[list[ChatAllowedFunction | ChatAllowedCustom], Length(1, 128)]


@attrs.define(kw_only=True)
class ChatAllowedTools:
    """Chat: only these functions."""

    type: Literal["allowed_tools"]
    allowed_tools: ChatAllowedList


ResponseToolChoice = Word | NamedTool | AllowedTools
ChatToolChoice = Word | ChatNamedTool | ChatNamedCustom | ChatAllowedTools


def normalised(choice: ResponseToolChoice | ChatToolChoice) -> ToolChoice:
    """The choice as one value, whatever its form was."""
    match choice:
        case NamedTool(name=name) | ChatNamedTool(function=FunctionReference(name=name)):
            return ToolChoice(mode="named", names=(name,))
        case ChatNamedCustom(custom=FunctionReference(name=name)):
            return ToolChoice(mode="named", names=(name,))
        case AllowedTools(mode=mode, tools=tools):
            return ToolChoice(mode=mode, names=tuple(tool.name for tool in tools))
        case ChatAllowedTools(allowed_tools=allowed):
            names = tuple(_reference(tool).name for tool in allowed.tools)
            return ToolChoice(mode=allowed.mode, names=names)
        case word:
            return ToolChoice(mode=word)


def check_tool_choice(
    raw: ResponseToolChoice | ChatToolChoice, tools: Sequence[DeclaredTool], *, constrained: bool
) -> None:
    """What the form alone cannot tell: ``tools`` are those of the request.

    Raises ``InvalidRequest`` for a choice without tools, a tool that is none of them or of another
    type, and a forced call beside a constraint on the text.
    """
    if raw in ("auto", "none"):
        return
    if not tools:
        raise InvalidRequest(
            "`tool_choice` needs `tools`.", code="invalid_value", param="tool_choice"
        )
    choice = normalised(raw)
    kinds = {tool.name: "custom" if tool.custom else "function" for tool in tools}
    for (place, kind), name in zip(_places(raw), choice.names, strict=True):
        if kinds.get(name) != kind:
            words = f"'{name}' as a {kind} tool" if name in kinds else f"'{name}'"
            raise InvalidRequest(
                f"`tool_choice` names {words}, which is none of `tools`.",
                code="invalid_value",
                param=place,
            )
    if choice.forced and constrained:
        raise InvalidRequest(
            "A forced `tool_choice` excludes a constraint on the text.",
            code="conflicting_parameters",
            param="tool_choice",
        )


def _reference(tool: ChatAllowedFunction | ChatAllowedCustom) -> FunctionReference:
    return tool.function if isinstance(tool, ChatAllowedFunction) else tool.custom


def _places(raw: ResponseToolChoice | ChatToolChoice) -> list[tuple[str, str]]:
    """Where each name stands, and of which type its tool is to be."""
    match raw:
        case NamedTool(type=kind):
            return [("tool_choice.name", kind)]
        case ChatNamedTool():
            return [("tool_choice.function.name", "function")]
        case ChatNamedCustom():
            return [("tool_choice.custom.name", "custom")]
        case AllowedTools(tools=tools):
            return [(f"tool_choice.tools[{i}].name", one.type) for i, one in enumerate(tools)]
        case ChatAllowedTools(allowed_tools=allowed):
            at = "tool_choice.allowed_tools.tools"
            return [(f"{at}[{i}].{one.type}.name", one.type) for i, one in enumerate(allowed.tools)]
        case _:
            return []
