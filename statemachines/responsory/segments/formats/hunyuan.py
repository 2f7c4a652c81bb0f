"""Hunyuan: a section of calls, each with its name, keys and values between tags.

As the model writes it::

    <tool_calls><tool_call>get_weather<tool_sep>
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>
    </tool_calls>
"""

from __future__ import annotations

from responsory.segments.formats.glm import PARAMETER
from responsory.segments.formats.phrase import SPACE, Gap, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec
from responsory.segments.formats.tagged import TaggedCalls
from responsory.segments.formats.tagged_written import TagsWritten

VALUE = "</arg_key>\n<arg_value>"
FORM = TaggedCalls(
    header=Phrase(SPACE, Gap("name", r"[^\s<>\"]"), SPACE, "<tool_sep>"),
    parameter=PARAMETER,
    value_end="</arg_value>",
    end=Phrase("</tool_call>"),
    write=TagsWritten(
        ("", "<tool_sep>\n"),
        ("<arg_key>", VALUE, VALUE),
        "</arg_value>\n",
        "</tool_call>\n",
    ),
)
SECTION = Section(
    lead=Phrase(SPACE, "<tool_call>"),
    form=FORM,
    write=("<tool_call>", "<tool_call>", "</tool_calls>"),
    again={"<tool_call>": FORM},
    ends=("</tool_calls>",),
)


def hunyuan_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_section(spec, "<tool_calls>", SECTION)
