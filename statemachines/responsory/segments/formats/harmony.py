"""gpt-oss: messages with a header each, which says their channel and, of a call, whom it is for.

As the model writes them (the prompt ends in ``<|start|>assistant``)::

    <|channel|>analysis<|message|>Two plus two.<|end|>
    <|start|>assistant<|channel|>commentary<|message|>I look it up.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>
    {"city": "Oslo"}<|call|>
    <|start|>assistant<|channel|>final<|message|>Four.<|return|>

(in one line). What is in the channel ``analysis`` is reasoning, in ``commentary`` a text for the
user before a call, and in ``final`` the answer. A call may also be addressed before its channel:
``<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>``.
Source: the harmony response format of OpenAI.
"""

from __future__ import annotations

from responsory.commands import CallInput, Reasoning, Text
from responsory.segments.formats.headed import HeadedJson
from responsory.segments.formats.phrase import SPACE, Element, Gap, Maybe, Phrase
from responsory.segments.formats.spec import Call, Mode, Spec, with_calls

MESSAGE = "<|message|>"
CALL = "<|call|>"
NAME = Gap("name", r"[^\s<>|]")
CONTENT: tuple[Element, ...] = (
    SPACE, Maybe(("<|constrain|>",)), SPACE, Maybe((Gap("", r"[\w/+.-]"),)), SPACE, MESSAGE,
)  # fmt: skip


def _addressed(*before: Element) -> HeadedJson:
    """A call whose header goes on with ``before`` behind the recipient."""
    return HeadedJson(
        header=Phrase(SPACE, Maybe(("functions.",)), NAME, *before, *CONTENT),
        end=Phrase(SPACE, CALL),
        closer=CALL,
        write=("functions.", f" <|constrain|>json{MESSAGE}", CALL),
        between="<|start|>assistant",
    )


IN_CHANNEL = _addressed()
IN_ROLE = _addressed(SPACE, "<|channel|>", Gap("", r"[a-z]"))
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
    ends = {**dict.fromkeys(("<|end|>", "<|return|>", CALL), "between"), ROLE: "role"}
    headers = {**CHANNELS, ROLE: "role"}
    modes = {
        "start": Mode(Text, headers, "text", calls=calls),
        "role": Mode(Text, CHANNELS, "text", calls={**calls, **role}),
        "between": Mode(Text, headers, "text", calls=calls),
        "text": Mode(Text, {**CHANNELS, **ends}, calls=calls),
        "analysis": Mode(Reasoning, ends),
        "commentary": Mode(Text, ends, phase="commentary"),
        "final": Mode(Text, ends, phase="final_answer"),
        "arguments": Mode(CallInput, {CALL: "between"}),
    }
    return Spec(modes, "start")


HARMONY = _harmony()


def harmony_calls(spec: Spec) -> Spec:
    """``spec`` with such calls alone: all other text, headers too, stands as it is."""
    for opener, form in OPENERS.items():
        spec = with_calls(spec, opener, form)
    return spec
