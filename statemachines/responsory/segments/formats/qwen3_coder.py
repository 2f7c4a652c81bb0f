"""Qwen3-Coder: a function between tags, and each parameter in lines of its own.

As the model writes it::

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>
"""

from __future__ import annotations

from responsory.segments.formats.phrase import SPACE, Gap, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec
from responsory.segments.formats.tagged import TaggedCalls
from responsory.segments.formats.tagged_written import TagsWritten

FORM = TaggedCalls(
    header=Phrase(Gap("name", r"[^\s<>=\"]"), ">"),
    parameter=Phrase("<parameter=", Gap("key", r"[^<>\n]"), ">"),
    value_end="</parameter>",
    end=Phrase("</function>"),
    write=TagsWritten(
        ("", ">\n"), ("<parameter=", ">\n", ">\n"), "\n</parameter>\n", "</function>\n</tool_call>"
    ),
    lines=True,
)
SECTION = Section(
    lead=Phrase(SPACE, "<function="),
    form=FORM,
    write=("\n<function=", "\n<tool_call>\n<function=", ""),
    again={"<function=": FORM},
    ends=("</tool_call>",),
)


def qwen3_coder_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_section(spec, "<tool_call>", SECTION)
