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
from antiphon.requests.tools import FunctionName, ToolType

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
    """Responses: exactly this function."""

    type: Literal["function"]
    name: FunctionName


@attrs.define(kw_only=True)
class AllowedTool:
    """Responses: one of the allowed functions."""

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
class ChatAllowedTool:
    """Chat: one of the allowed functions."""

    type: ToolType
    function: FunctionReference


@attrs.define(kw_only=True)
class ChatAllowedList:
    """The inside of chat's ``allowed_tools``."""

    mode: AllowedMode
    tools: Annotated[list[ChatAllowedTool], Length(1, 128)]


@attrs.define(kw_only=True)
class ChatAllowedTools:
    """Chat: only these functions."""

    type: Literal["allowed_tools"]
    allowed_tools: ChatAllowedList


ResponseToolChoice = Word | NamedTool | AllowedTools
ChatToolChoice = Word | ChatNamedTool | ChatAllowedTools


def normalised(choice: ResponseToolChoice | ChatToolChoice) -> ToolChoice:
    """The choice as one value, whatever its form was."""
    match choice:
        case NamedTool(name=name) | ChatNamedTool(function=FunctionReference(name=name)):
            return ToolChoice(mode="named", names=(name,))
        case AllowedTools(mode=mode, tools=tools):
            return ToolChoice(mode=mode, names=tuple(tool.name for tool in tools))
        case ChatAllowedTools(allowed_tools=allowed):
            names = tuple(tool.function.name for tool in allowed.tools)
            return ToolChoice(mode=allowed.mode, names=names)
        case word:
            return ToolChoice(mode=word)


def check_tool_choice(
    raw: ResponseToolChoice | ChatToolChoice, names: Sequence[str], *, constrained: bool
) -> None:
    """What the form alone cannot tell: ``names`` are the tools of the request.

    Raises ``InvalidRequest`` for a choice without tools, a name that is none of theirs, and a
    forced call beside a constraint on the text.
    """
    if raw in ("auto", "none"):
        return
    if not names:
        raise InvalidRequest(
            "`tool_choice` needs `tools`.", code="invalid_value", param="tool_choice"
        )
    choice = normalised(raw)
    for index, name in enumerate(choice.names):
        if name not in names:
            raise InvalidRequest(
                f"`tool_choice` names '{name}', which is none of `tools`.",
                code="invalid_value",
                param=_place(raw, index),
            )
    if choice.forced and constrained:
        raise InvalidRequest(
            "A forced `tool_choice` excludes a constraint on the text.",
            code="conflicting_parameters",
            param="tool_choice",
        )


def _place(raw: ResponseToolChoice | ChatToolChoice, index: int) -> str:
    match raw:
        case NamedTool():
            return "tool_choice.name"
        case ChatNamedTool():
            return "tool_choice.function.name"
        case AllowedTools():
            return f"tool_choice.tools[{index}].name"
        case _:
            return f"tool_choice.allowed_tools.tools[{index}].function.name"
