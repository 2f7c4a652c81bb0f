"""Cohere Command: a list of envelopes between two tags, and tags around the answer and the thought.

As the model writes them::

    <|START_THINKING|>I look it up.<|END_THINKING|><|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}
    ]<|END_ACTION|>
    <|START_THINKING|>That is all.<|END_THINKING|><|START_RESPONSE|>It rains.<|END_RESPONSE|>
"""

from __future__ import annotations

from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.json_list import json_list
from responsory.segments.formats.section import with_section
from responsory.segments.formats.spec import Mode, Spec
from responsory.segments.formats.think import reasoning_between

ENVELOPE = JsonEnvelope(
    "", names=("tool_name", "name"), arguments=("parameters", "arguments"), lead="", between=""
)


def cohere_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_section(
        spec, "<|START_ACTION|>", json_list(ENVELOPE, lead="[\n    ", closer="<|END_ACTION|>")
    )


def _cohere_thinking() -> Spec:
    spec = reasoning_between("<|START_THINKING|>", "<|END_THINKING|>")
    modes = dict(spec.modes)
    around = {"<|START_RESPONSE|>": "answer", "<|END_RESPONSE|>": "answer"}
    answer = modes["answer"]
    modes["answer"] = Mode(answer.channel, {**answer.markers, **around})
    return Spec(modes, spec.start)


COHERE_THINKING = _cohere_thinking()
