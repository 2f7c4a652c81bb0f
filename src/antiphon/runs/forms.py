"""The form of an answer, as engines take it: it holds from the first character of the answer on."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.engines.port import GrammarSpec
from antiphon.runs.plan import RunPlan
from responsory.commands import Reasoning, Text
from responsory.segments import Spec

TAIL = 32
"""Tokens at the end of a prompt in which a marker of reasoning is looked for."""


def grammar_spec(plan: RunPlan, prompt: Sequence[int]) -> GrammarSpec | None:
    """What the answer to this prompt is held to; None if to nothing."""
    constraint = plan.sampling.constraint
    if constraint is None:
        return None
    opener, closer = _marks(plan.thinks)
    if closer:
        end = plan.model.prompter.decode(prompt[-TAIL:]).rstrip()
        if end.endswith(closer):  # the prompt has the thought already, be it an empty one
            opener = closer = ""
        elif opener and end.endswith(opener):
            opener = ""
    return GrammarSpec(
        kind=constraint.kind,
        text=constraint.text,
        strict=constraint.strict,
        opener=opener,
        closer=closer,
    )


def _marks(spec: Spec) -> tuple[str, str]:
    """(opener, closer) of the reasoning that an answer begins with. No opener: it is open from the
    start; neither: the model marks none."""
    start = spec.modes[spec.start]
    for opener, name in start.markers.items():
        mode = spec.modes[name]
        if start.channel is Text and mode.channel is Reasoning:
            return opener, _closer(spec, name)
    return "", _closer(spec, spec.start) if start.channel is Reasoning else ""


def _closer(spec: Spec, name: str) -> str:
    markers = spec.modes[name].markers.items()
    return next((mark for mark, after in markers if spec.modes[after].channel is Text), "")
