"""Kimi K2: a section of calls, each named with an id of its own.

As the model writes them::

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>

(in one line). The whole of ``functions.get_weather:0`` is the id that the template wants back.
"""

from __future__ import annotations

from responsory.segments.formats.headed import HeadedJson
from responsory.segments.formats.phrase import SPACE, Gap, Maybe, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec

CALL = "<|tool_call_begin|>"
CALL_END = "<|tool_call_end|>"
END = "<|tool_calls_section_end|>"
ARGUMENTS = "<|tool_call_argument_begin|>"

FORM = HeadedJson(
    header=Phrase(
        SPACE,
        Maybe(("functions.",)),
        Gap("name", r"[^\s<>|:]"),
        Maybe((":", Gap("index", "[0-9]"))),
        SPACE,
        ARGUMENTS,
    ),
    end=Phrase(SPACE, CALL_END),
    closer=CALL_END,
    write=("functions.", f":0{ARGUMENTS}", CALL_END),
    call_id="functions.{name}:{index}",
)
SECTION = Section(
    lead=Phrase(SPACE, CALL),
    form=FORM,
    write=(CALL, CALL, END),
    again={CALL: FORM},
    ends=(END,),
)


def kimi_k2_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_section(spec, "<|tool_calls_section_begin|>", SECTION)
