"""Mistral: a list of envelopes, and since 2025 a name and its arguments behind each marker.

As the model writes them::

    [TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "ping"}]
    [TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}[TOOL_CALLS]ping[ARGS]{}
    [TOOL_CALLS]get_weather[CALL_ID]Xk29ab0Qz[ARGS]{"city": "Oslo"}
"""

from __future__ import annotations

from responsory.segments.formats.headed import HeadedJson
from responsory.segments.formats.json_list import json_list
from responsory.segments.formats.phrase import SPACE, Gap, Maybe, Phrase
from responsory.segments.formats.section import with_section
from responsory.segments.formats.spec import Spec, with_calls

OPENER = "[TOOL_CALLS]"
ARGS = HeadedJson(
    header=Phrase(
        SPACE,
        Gap("name", r"[^\s\[\]{}<>\"]"),
        SPACE,
        Maybe(("[CALL_ID]", SPACE, Gap("call_id", r"[^\s\[\]{}<>\"]"), SPACE)),
        "[ARGS]",
    ),
    end=None,
    closer="",
    write=("", "[ARGS]", ""),
    call_id="{call_id}",
)


def mistral_array_calls(spec: Spec) -> Spec:
    """``spec`` with lists of envelopes."""
    return with_section(spec, OPENER, json_list(lead=" ["))


def mistral_args_calls(spec: Spec) -> Spec:
    """``spec`` with names and their arguments."""
    return with_calls(spec, OPENER, ARGS)
