"""One data spec per model family: how its raw text marks what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from responsory.segments.formats.cohere import COHERE_THINKING, cohere_calls
from responsory.segments.formats.deepseek_v3 import deepseek_v3_calls, deepseek_v31_calls
from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.forced import forced_calls
from responsory.segments.formats.granite import GRANITE_THINKING, granite_calls
from responsory.segments.formats.hermes import hermes_calls
from responsory.segments.formats.internlm import internlm_calls
from responsory.segments.formats.kimi_k2 import kimi_k2_calls
from responsory.segments.formats.llama3_json import llama3_json_calls
from responsory.segments.formats.mistral import mistral_args_calls, mistral_array_calls
from responsory.segments.formats.plain import PLAIN
from responsory.segments.formats.spec import (
    Call,
    CallFormat,
    CallReader,
    Mode,
    Part,
    Spec,
    Verdict,
    with_calls,
)
from responsory.segments.formats.think import (
    GEMMA4_THOUGHT,
    KIMI_VL,
    MISTRAL_THINK,
    THINK,
    THINK_PREFILLED,
    reasoning_between,
)

REASONING: Mapping[str, Spec] = {
    "plain": PLAIN,
    "think": THINK,
    "think_prefilled": THINK_PREFILLED,
    "mistral_think": MISTRAL_THINK,
    "kimi_vl": KIMI_VL,
    "gemma4_thought": GEMMA4_THOUGHT,
    "cohere_thinking": COHERE_THINKING,
    "granite_thinking": GRANITE_THINKING,
}
"""How reasoning is marked, by the name of the family."""

CALLS: Mapping[str, Callable[[Spec], Spec]] = {
    "hermes": hermes_calls,
    "llama3_json": llama3_json_calls,
    "mistral_array": mistral_array_calls,
    "mistral_args": mistral_args_calls,
    "deepseek_v3": deepseek_v3_calls,
    "deepseek_v31": deepseek_v31_calls,
    "kimi_k2": kimi_k2_calls,
    "internlm": internlm_calls,
    "cohere": cohere_calls,
    "granite": granite_calls,
    "forced": forced_calls,
}
"""How calls are marked: what adds them to a spec, by the name of the family."""

FORMATS: Mapping[str, Spec] = {
    **REASONING,
    **{name: with_such_calls(PLAIN) for name, with_such_calls in CALLS.items()},
}
"""The specs by the name of the family."""


@cache
def family(name: str, *, reasoning: bool = True) -> Spec:
    """The spec of a family, or of a reasoning family and a call family: ``think+hermes``.

    ``reasoning`` False: the same where reasoning is text like any other. Raises KeyError with the
    known names.
    """
    thinks, joined, calls = name.partition("+")
    if not joined and thinks in CALLS:
        thinks, calls = "plain", thinks
    if thinks not in REASONING or (joined and calls not in CALLS):
        known = ", ".join(sorted(FORMATS))
        pairs = ", ".join(f"+{call}" for call in sorted(CALLS))
        raise KeyError(f"no family {name!r}; there are {known}, and one of reasoning with {pairs}")
    if not calls:
        return REASONING[thinks] if reasoning else PLAIN
    return CALLS[calls](REASONING[thinks] if reasoning else PLAIN)


__all__ = [
    "FORMATS",
    "GEMMA4_THOUGHT",
    "KIMI_VL",
    "MISTRAL_THINK",
    "PLAIN",
    "THINK",
    "THINK_PREFILLED",
    "Call",
    "CallFormat",
    "CallReader",
    "JsonEnvelope",
    "Mode",
    "Part",
    "Spec",
    "Verdict",
    "family",
    "hermes_calls",
    "reasoning_between",
    "with_calls",
]
