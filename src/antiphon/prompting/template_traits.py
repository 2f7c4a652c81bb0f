"""What a chat template wants a history to look like, tried once when it is loaded.

Templates agree on roles and on little else: one writes a call's arguments from an object, another
from a text, one reads the thought of an earlier turn under one key and one under another, and some
want ids of nine characters. A conversation of ours is given the shape before it is rendered.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from antiphon.prompting.probes import (
    ANSWER,
    ARGUMENTS,
    CUT,
    KEY,
    LONG_ID,
    NAME,
    QUESTION,
    SHORT_ID,
    THOUGHT,
    TOOL,
    VALUE,
    Writes,
    called,
    turn_of,
    written,
)
from antiphon.prompting.template import Message

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
SHORT = 9
"""Characters of the ids that some templates want."""
_LETTERS = string.digits + string.ascii_letters


@attrs.frozen(kw_only=True)
class TemplateTraits:
    """``takes_system``: it has a place for a system message. ``shows_tools``: declared tools come
    out of it. ``shows_calls``: earlier calls do, with their arguments. ``arguments``: as what it
    takes those. ``shows_broken``: it shows a call with arguments that are no object, one that was
    cut for example. ``reasoning_key``: where it reads the thought of an earlier turn.
    ``short_ids``: it refuses ids that are not nine letters and digits."""

    takes_system: bool = True
    shows_tools: bool = False
    shows_calls: bool = False
    arguments: Literal["object", "text"] = "object"
    shows_broken: bool = True
    reasoning_key: str = "reasoning_content"
    short_ids: bool = False

    def shaped(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages as the template wants them: the same ones where nothing is to be done."""
        if (self.arguments, self.shows_broken, self.reasoning_key, self.short_ids) == _USUAL:
            return messages
        return [self._shaped(message) for message in messages]

    def _shaped(self, message: Message) -> Message:
        made = dict(message)
        if (thought := made.pop("reasoning_content", None)) is not None:
            made[self.reasoning_key] = thought
        if calls := made.get("tool_calls"):
            whole = [self._call(call) for call in calls if self._shows(call)]
            made["tool_calls"] = whole
            if not whole:
                del made["tool_calls"]
            broken = [_in_words(call) for call in calls if not self._shows(call)]
            made["content"] = "\n".join(filter(None, (made["content"], *broken)))
        if self.short_ids and "tool_call_id" in made:
            made["tool_call_id"] = short_id(made["tool_call_id"])
        return made

    def _shows(self, call: dict[str, Any]) -> bool:
        return self.shows_broken or not isinstance(call["function"]["arguments"], str)

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        made = dict(call)
        if self.short_ids:
            made["id"] = short_id(made["id"])
        arguments = made["function"]["arguments"]
        if self.arguments == "text" and not isinstance(arguments, str):
            text = json.dumps(arguments, ensure_ascii=False)
            made["function"] = {**made["function"], "arguments": text}
        return made


_USUAL = ("object", True, "reasoning_content", False)


def _in_words(call: dict[str, Any]) -> str:
    """A call that the template cannot show as one."""
    return f"{call['function']['name']} {call['function']['arguments']}"


def short_id(call_id: str) -> str:
    """The id itself if it is short enough, else nine characters that it is known by."""
    if len(call_id) == SHORT and all(char in _LETTERS for char in call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:8], "big")
    digits = []
    for _ in range(SHORT):
        number, digit = divmod(number, len(_LETTERS))
        digits.append(_LETTERS[digit])
    return "".join(digits)


def traits_of(prompter: Writes) -> TemplateTraits:
    """The traits of the template behind ``prompter``."""
    bare = written(prompter, [QUESTION]) or ""
    told = written(prompter, [QUESTION], tools=[TOOL]) or ""
    shows = NAME in told and NAME not in bare
    tools = [TOOL] if shows else None
    found = _call_shape(prompter, tools)
    arguments, short_ids = found or ("object", False)
    told_first = written(prompter, [{"role": "system", "content": ANSWER}, QUESTION])
    return TemplateTraits(
        takes_system=ANSWER in (told_first or ""),
        shows_tools=shows,
        shows_calls=found is not None,
        arguments=arguments,
        shows_broken=found is None or _shows_broken(prompter, tools, short_ids=short_ids),
        reasoning_key=_reasoning_key(prompter, tools),
        short_ids=short_ids,
    )


def _call_shape(prompter: Writes, tools: Any) -> tuple[Literal["object", "text"], bool] | None:
    """As what a call's arguments are taken, and whether ids must be short; None: calls do not come
    out of the template."""
    forms: tuple[Literal["object", "text"], ...] = ("object", "text")
    for form in forms:
        given = ARGUMENTS if form == "object" else json.dumps(ARGUMENTS)
        for call_id in (LONG_ID, SHORT_ID):
            for content in ("", None):
                turn = turn_of(prompter, called(call_id, given, content), tools=tools)
                if turn is not None and _is_right(turn):
                    return form, call_id == SHORT_ID
    return None


def _shows_broken(prompter: Writes, tools: Any, *, short_ids: bool) -> bool:
    turn = turn_of(prompter, called(SHORT_ID if short_ids else LONG_ID, CUT), tools=tools)
    return turn is not None and CUT in turn


def _is_right(turn: str) -> bool:
    """Whether a call's arguments came out as a model would write them: not as Python shows an
    object, and not as a text inside a text."""
    if NAME not in turn or VALUE not in turn:
        return False
    return f"'{KEY}': '{VALUE}'" not in turn and f'\\"{KEY}\\"' not in turn


def _reasoning_key(prompter: Writes, tools: Any) -> str:
    """Tried in a last turn, and in one with a call, which some templates alone show it in."""
    for message in ({"role": "assistant", "content": ANSWER}, called(SHORT_ID, ARGUMENTS)):
        for key in REASONING_KEYS:
            turn = turn_of(prompter, {**message, key: THOUGHT}, tools=tools)
            if turn is not None and THOUGHT in turn:
                return key
    return REASONING_KEYS[0]
