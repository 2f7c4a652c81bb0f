"""gpt-oss: messages with a header each, which says their channel and, of a call, whom it is for.

As the model writes them (the prompt ends in ``<|start|>assistant``)::

    <|channel|>analysis<|message|>Two plus two.<|end|>
    <|start|>assistant<|channel|>commentary<|message|>I look it up.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>
    {"city": "Oslo"}<|call|>
    <|start|>assistant<|channel|>final<|message|>Four.<|return|>

(in one line). What is in the channel ``analysis`` is reasoning, in ``commentary`` a text for the
user before a call, and in ``final`` the answer. A call may also be addressed before its channel:
``<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>``. Content that
does not begin as a JSON object, like that of the built-in ``python``, goes on to its closer.
The header of an unknown channel is text.
Source: the harmony response format of OpenAI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from responsory.commands import CallInput, Reasoning, Text
from responsory.immutable import immutable
from responsory.segments.formats.headed import HeadedJson, HeadedReader, Place
from responsory.segments.formats.phrase import SPACE, Element, Gap, Maybe, Phrase
from responsory.segments.formats.plain import PLAIN
from responsory.segments.formats.spec import Call, CallReader, Mode, Part, Spec, with_calls

if TYPE_CHECKING:
    from responsory.segments.tools import Tools

MESSAGE = "<|message|>"
CALL = "<|call|>"
NAME = Gap("name", r"[^\s<>|]")
CONTENT: tuple[Element, ...] = (
    SPACE, Maybe(("<|constrain|>",)), SPACE, Maybe((Gap("", r"[\w/+.-]"),)), SPACE, MESSAGE,
)  # fmt: skip


@immutable
class Addressed(HeadedJson):
    """A message to a tool, behind what says that it has a recipient."""

    def reader(self, tools: Tools) -> CallReader:
        return AddressedReader(self, tools)


class AddressedReader(HeadedReader):
    """JSON behind a header, or text of any other kind."""

    __slots__ = ()

    def _read_arguments(self, text: str, at: int, parts: list[Part]) -> int:
        if not self._arguments.begun:
            content = text[at:].lstrip()
            if content and content[0] not in "{<":
                self._place = Place.BROKEN
                return len(text) - len(content)
        return super()._read_arguments(text, at, parts)


def _addressed(*before: Element, channel: str = "") -> Addressed:
    """A call whose header goes on with ``before`` behind the recipient, written as ``channel``."""
    return Addressed(
        header=Phrase(SPACE, Maybe(("functions.",)), NAME, *before, *CONTENT),
        end=Phrase(SPACE, CALL),
        closer=CALL,
        write=("functions.", f"{channel} <|constrain|>json{MESSAGE}", CALL),
        between="<|start|>assistant",
    )


IN_CHANNEL = _addressed()
IN_ROLE = _addressed(SPACE, "<|channel|>", Gap("", r"[a-z]"), channel="<|channel|>commentary")
CHANNELS = {
    f"<|channel|>analysis{MESSAGE}": "analysis",
    f"<|channel|>commentary{MESSAGE}": "commentary",
    f"<|channel|>final{MESSAGE}": "final",
}
OPENERS = {"<|channel|>commentary to=": IN_CHANNEL, "<|channel|>analysis to=": IN_CHANNEL}
ROLE = "<|start|>assistant"


def _harmony() -> Spec:
    calls = {opener: Call(form, "between", "arguments") for opener, form in OPENERS.items()}
    role = {"to=": Call(IN_ROLE, "between", "arguments")}
    ends = {**dict.fromkeys(("<|end|>", "<|return|>"), "between"), ROLE: "role"}
    headers = {**CHANNELS, ROLE: "role"}
    modes = {
        "start": Mode(Text, headers, "text", calls={**calls, **role}),
        "role": Mode(Text, CHANNELS, "text", calls={**calls, **role}),
        "between": Mode(Text, {**ends, CALL: "between", **CHANNELS}, "text", calls=calls),
        "text": Mode(Text, {**CHANNELS, **ends}, calls=calls),
        # A message that has no end is over where another one begins.
        "analysis": Mode(Reasoning, {**ends, **CHANNELS}, calls=calls),
        "commentary": Mode(Text, {**ends, **CHANNELS}, phase="commentary", calls=calls),
        "final": Mode(Text, ends, phase="final_answer", calls=calls),
        "arguments": Mode(CallInput, {CALL: "between"}),
    }
    return Spec(modes, "start")


HARMONY = _harmony()


def harmony_calls(spec: Spec) -> Spec:
    """``spec`` with such calls alone: all other text, headers too, stands as it is. Of the family
    that reads all of the headers it is that."""
    if spec == HARMONY:
        return spec
    if spec != PLAIN:
        raise ValueError("channels have reasoning in them, and no other marks of it")
    for opener, form in OPENERS.items():
        spec = with_calls(spec, opener, form)
    return spec
