"""Function tools as Chat (nested) and Responses (flat) declare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Offered, Pattern

FunctionName = Annotated[str, Pattern(r"[A-Za-z0-9_-]{1,64}")]
ToolType = Annotated[str, Offered(("function",))]


@attrs.define(kw_only=True)
class FunctionTool:
    """A tool of ``/v1/responses``."""

    type: ToolType
    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


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

    type: ToolType
    function: Function


def check_tool_names(names: Sequence[str], field: str) -> None:
    """Names are unique; ``field`` is where a tool has its name. Raises ``InvalidRequest``."""
    if len(set(names)) == len(names):
        return
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidRequest(
                f"Two tools are named '{name}'.",
                code="invalid_value",
                param=f"tools[{index}].{field}",
            )
