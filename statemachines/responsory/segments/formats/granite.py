"""IBM Granite 3: a list of envelopes behind a tag, and thought between two sentences.

As the model writes them::

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]
    Here is my thought process: I look it up. Here is my response: It rains.

Granite 4 writes its calls as ``hermes``.
"""

from __future__ import annotations

from responsory.commands import Reasoning, Text
from responsory.segments.formats.json_list import json_list
from responsory.segments.formats.section import with_section
from responsory.segments.formats.spec import Mode, Spec

THOUGHT = ("Here is my thought process:", "Here's my thought process:")
RESPONSE = ("Here is my response:", "Here's my response:")


def granite_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    spec = with_section(spec, "<|tool_call|>", json_list())
    return with_section(spec, "<tool_call>", json_list())


GRANITE_THINKING = Spec(
    {
        "begin": Mode(Text, dict.fromkeys(THOUGHT, "reasoning"), "answer"),
        "reasoning": Mode(Reasoning, dict.fromkeys(RESPONSE, "answer")),
        "answer": Mode(Text),
    },
    "begin",
)
