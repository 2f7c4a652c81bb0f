"""What a chat template writes where it is tried: conversations with words that nobody else uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Protocol

from antiphon.errors import InvalidRequest
from antiphon.prompting.template import Message

NAME = "probe_weather"
KEY, VALUE = "probe_place", "Reykjavik"
QUESTION: Message = {"role": "user", "content": "probe of a question"}
ANSWER = "probe of an answer"
THOUGHT = "probe of a thought"
TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {KEY: {"type": "string", "description": "A city."}},
            "required": [KEY],
        },
    },
}
LONG_ID = "call_0123456789abcdef0123456789abcdef_0"
"""As this server makes them."""
SHORT_ID = "a1b2c3d4e"
"""As the templates of Mistral want them: nine letters and digits."""


class Writes(Protocol):
    """A prompter with a chat template: see ``TextPrompter.written``."""

    def written(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The text of the prompt, as the template writes it of exactly these messages."""
        ...


def written(prompter: Writes, messages: Sequence[Message], **told: Any) -> str | None:
    """The prompt's text; None where the template refuses."""
    try:
        return prompter.written(messages, **told)
    except InvalidRequest:
        return None


def turn_of(prompter: Writes, message: Message, **told: Any) -> str | None:
    """What the template writes for an assistant's turn behind a question, from where the prompt
    for such a turn ends; None where it refuses."""
    asked = written(prompter, [QUESTION], **told)
    whole = written(prompter, [QUESTION, message], add_generation_prompt=False, **told)
    if whole is None:  # some want every call to be answered
        result = {"role": "tool", "name": NAME, "content": "rain"}
        calls = message.get("tool_calls")
        if not calls:
            return None
        result["tool_call_id"] = calls[0]["id"]
        whole = written(prompter, [QUESTION, message, result], add_generation_prompt=False, **told)
    if whole is None or asked is None:
        return None
    same = takewhile(lambda pair: pair[0] == pair[1], zip(asked, whole, strict=False))
    return whole[sum(1 for _ in same) :]


def called(call_id: str, arguments: Mapping[str, Any] | str, content: str | None = "") -> Message:
    """An assistant's message with the probe's call."""
    function = {"name": NAME, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": content, "tool_calls": [call]}


ARGUMENTS: Mapping[str, Any] = {KEY: VALUE}
CUT = f'{{"{KEY}": {VALUE}'
"""Arguments that break off, and that a template may show as the text that they are."""
