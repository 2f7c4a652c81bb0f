"""Tools in words, for a model whose chat template knows none: in its first message.

Earlier calls and their outputs become texts as well, so that nothing of a history is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.prompting.template import Message

WORDS = (
    "You can call tools. Here they are, one a line, as JSON:\n{tools}\n"
    "To call one, answer with nothing but\n{call}"
)


def with_told_tools(
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    call: str,
    calls_as_text: bool,
    role: str = "system",
) -> list[Message]:
    """The messages with the tools, and how to ``call`` one, told in the first one.

    That is one of ``role``: the system's, or the user's where the template has none of the system.
    ``calls_as_text``: the template shows no calls, and knows no outputs of them.
    """
    made = [_as_text(message) if calls_as_text else message for message in messages]
    if not tools:
        return made
    lines = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
    words = WORDS.format(tools=lines, call=call)
    if not made or made[0]["role"] != role:
        return [{"role": role, "content": words}, *made]
    said = made[0]["content"]
    # Instructions go on; a question comes last.
    told = f"{said}\n\n{words}" if role == "system" else f"{words}\n\n{said}"
    return [{**made[0], "content": told}, *made[1:]]


def _as_text(message: Message) -> Message:
    made = dict(message)
    if calls := made.pop("tool_calls", None):
        written = json.dumps(
            [
                {"name": call["function"]["name"], "parameters": call["function"]["arguments"]}
                for call in calls
            ],
            ensure_ascii=False,
        )
        made["content"] = "\n".join(filter(None, (made["content"], written)))
    elif made["role"] == "tool":
        name = made.pop("name", None)
        made.pop("tool_call_id", None)
        of = f" of {name}" if name else ""
        made.update(role="user", content=f"The output{of}:\n{made['content']}")
    return made
