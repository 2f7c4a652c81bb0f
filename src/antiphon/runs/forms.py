"""The form of an answer, as engines take it: it holds from the first character of the answer on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from antiphon.engines.port import Capability, GrammarSpec
from antiphon.errors import InvalidRequest
from antiphon.requests.structured import Constraint
from antiphon.runs.plan import RunPlan
from responsory.commands import Reasoning, Text
from responsory.segments import Spec
from responsory.segments.holding import answer_written, begins_bare, openers
from responsory.segments.written import (
    Exactly,
    JsonText,
    OneOf,
    OwnGrammar,
    Unwritable,
    Written,
    as_json,
)

TAIL = 32
"""Tokens at the end of a prompt in which a marker of reasoning is looked for."""


def grammar_spec(plan: RunPlan, prompt: Sequence[int]) -> GrammarSpec | None:
    """What the answer to this prompt is held to; None if to nothing. Raises like ``calls_form``."""
    if not plan.model.prompter.writes_prompts:
        return None  # a recording plays as it is
    constraint, budget = plan.sampling.constraint, plan.thought_budget
    calls = holds_calls(plan)
    if constraint is None and budget is None and not calls:
        return None
    opener, closer = _thought(plan, prompt)
    barred: tuple[str, ...] = ()
    form: dict[str, Any] = {"kind": "any", "text": ""}
    if calls:
        plan.calls_form = plan.calls_form or calls_form(plan)
        form = {"kind": "calls", "text": plan.calls_form}
        # Calls that may come anywhere may come in the thought as well: then that is text like any.
        anywhere = not plan.calls_least and constraint is None and not begins_bare(plan.format)
        if anywhere and budget is None:
            opener = closer = ""
        barred = openers(plan.format)
    elif constraint is not None:
        form = {"kind": constraint.kind, "text": constraint.text, "strict": constraint.strict}
    elif not closer:
        return None  # there is no thought, so none that could be too long
    else:
        barred = _openers(plan.thinks)
    return GrammarSpec(
        **form, opener=opener, closer=closer, barred=json.dumps(barred), budget=budget
    )


def holds_calls(plan: RunPlan) -> bool:
    """Whether calls are held to anything: to come, to some tools, to a schema or a grammar, or to
    stand alone where a form says what else an answer is."""
    if not (plan.calls and plan.callable and plan.model.prompter.writes_prompts):
        return False
    if Capability.FORCED_CALLS not in plan.model.info.capabilities:
        return False
    held = any(tool.strict or tool.grammar is not None for tool in plan.callable)
    limited = plan.tools.only is not None or plan.sampling.constraint is not None
    return bool(plan.calls_least) or held or limited


def calls_form(plan: RunPlan) -> str:
    """The whole answer behind its thought, as the text of a ``GrammarSpec``.

    Raises ``InvalidRequest`` for a strict tool whose schema the model's own form cannot keep.
    """
    constraint = plan.sampling.constraint
    try:
        answer = answer_written(
            plan.format,
            plan.callable,
            forced=bool(plan.calls_least),
            most=None if plan.parallel_calls else 1,
            instead=None if constraint is None else _constrained(constraint),
        )
    except Unwritable as refusal:
        raise InvalidRequest(
            f"`strict`: the model `{plan.model.id}` cannot be held to this schema: {refusal}.",
            code="invalid_schema",
            param=refusal.place,
        ) from None
    return json.dumps(as_json(answer))


def _constrained(constraint: Constraint) -> Written:
    """Text that a constraint allows."""
    text, place = constraint.text, constraint.param
    match constraint.kind:
        case "json_object":
            return JsonText()
        case "json_schema":
            return JsonText(json.loads(text), constraint.strict, place)
        case "choice":
            return OneOf(tuple(Exactly(one) for one in json.loads(text)))
        case syntax:
            return OwnGrammar(syntax, text, place)


def _thought(plan: RunPlan, prompt: Sequence[int]) -> tuple[str, str]:
    """(opener, closer) of the reasoning that this answer may begin with. No opener: it is open from
    the start; no closer: there is none."""
    opener, closer = _marks(plan.thinks)
    if closer:
        end = plan.model.prompter.decode(prompt[-TAIL:]).rstrip()
        if end.endswith(closer):  # the prompt has the thought already, be it an empty one
            return "", ""
        if opener and end.endswith(opener):
            opener = ""
    return opener, closer


def _marks(spec: Spec) -> tuple[str, str]:
    """(opener, closer) of the reasoning that an answer begins with. No opener: it is open from the
    start; neither: the model marks none."""
    start = spec.modes[spec.start]
    for opener, name in start.markers.items():
        mode = spec.modes[name]
        if start.channel is Text and mode.channel is Reasoning:
            return opener, _closer(spec, name)
    return "", _closer(spec, spec.start) if start.channel is Reasoning else ""


def _openers(spec: Spec) -> tuple[str, ...]:
    """What begins a thought in a text."""
    modes = spec.modes
    found = (
        marker
        for mode in modes.values()
        for marker, after in mode.markers.items()
        if (mode.channel, modes[after].channel) == (Text, Reasoning)
    )
    return tuple(dict.fromkeys(found))


def _closer(spec: Spec, name: str) -> str:
    markers = spec.modes[name].markers.items()
    return next((mark for mark, after in markers if spec.modes[after].channel is Text), "")
