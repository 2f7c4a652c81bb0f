"""One data spec per model family: how its raw text marks what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from responsory.segments.formats.cohere import COHERE_THINKING, cohere_calls
from responsory.segments.formats.deepseek_v3 import deepseek_v3_calls, deepseek_v31_calls
from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.forced import forced_calls
from responsory.segments.formats.gemma4 import gemma4_calls
from responsory.segments.formats.glm import glm45_calls, glm47_calls
from responsory.segments.formats.granite import GRANITE_THINKING, granite_calls
from responsory.segments.formats.harmony import HARMONY, harmony_calls
from responsory.segments.formats.hermes import hermes_calls
from responsory.segments.formats.hunyuan import hunyuan_calls
from responsory.segments.formats.internlm import internlm_calls
from responsory.segments.formats.invoke import (
    deepseek_v4_calls,
    deepseek_v32_calls,
    minimax_m2_calls,
    step3_calls,
)
from responsory.segments.formats.kimi_k2 import kimi_k2_calls
from responsory.segments.formats.llama3_json import llama3_json_calls
from responsory.segments.formats.mistral import mistral_args_calls, mistral_array_calls
from responsory.segments.formats.plain import PLAIN
from responsory.segments.formats.pythonic import lfm2_calls, pythonic_calls
from responsory.segments.formats.qwen3_coder import qwen3_coder_calls
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
    "harmony": HARMONY,
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
    "qwen3_coder": qwen3_coder_calls,
    "glm45": glm45_calls,
    "glm47": glm47_calls,
    "hunyuan": hunyuan_calls,
    "minimax_m2": minimax_m2_calls,
    "deepseek_v32": deepseek_v32_calls,
    "deepseek_v4": deepseek_v4_calls,
    "step3": step3_calls,
    "pythonic": pythonic_calls,
    "lfm2": lfm2_calls,
    "gemma4": gemma4_calls,
    "harmony": harmony_calls,
}
"""How calls are marked: what adds them to a spec, by the name of the family."""

FORMATS: Mapping[str, Spec] = {
    **{name: with_such_calls(PLAIN) for name, with_such_calls in CALLS.items()},
    **REASONING,
}
"""The specs by the name of the family."""


@cache
def family(name: str, *, reasoning: bool = True) -> Spec:
    """The spec of a family, or of a reasoning family and a call family: ``think+hermes``.

    ``reasoning`` False: the same where reasoning is text like any other. Raises KeyError with the
    known names.
    """
    thinks, joined, calls = name.partition("+")
    if not joined and thinks in CALLS and (thinks not in REASONING or not reasoning):
        thinks, calls = "plain", thinks
    if thinks not in REASONING or (joined and calls not in CALLS):
        raise KeyError(
            f"no family {name!r}; of reasoning there are {', '.join(sorted(REASONING))}, of calls "
            f"{', '.join(sorted(CALLS))}, and both together as in think+hermes"
        )
    if joined and thinks != calls and "harmony" in (thinks, calls) and "plain" not in name:
        raise KeyError(f"no family {name!r}: in harmony reasoning and calls are one, by channels")
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
