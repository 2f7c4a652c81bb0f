"""The arguments of a call as a model that is held to a form writes them in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.segments.written import Exactly, InJsonString, InOrder, JsonText

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

INPUT: dict[str, JSON] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""The arguments of a tool that takes text."""


def json_arguments(tool: Tool) -> Written:
    """An object that holds to the tool's schema; of a custom tool one that holds its input."""
    if tool.kind == "function":
        return JsonText(_of_object(tool.parameters), tool.strict, tool.place)
    if tool.grammar is None:
        return JsonText(INPUT)
    return InOrder((Exactly('{"input": '), InJsonString(tool.grammar), Exactly("}")))


def _of_object(schema: Mapping[str, JSON] | None) -> Mapping[str, JSON] | None:
    """The schema where it allows an object: arguments are one, be it said or not."""
    return (
        schema if schema is None or schema.get("type") == "object" else {**schema, "type": "object"}
    )
