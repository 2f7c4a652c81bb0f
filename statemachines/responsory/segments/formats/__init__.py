"""One data spec per model family: how its raw text marks what it is."""

from __future__ import annotations

from collections.abc import Mapping

from responsory.segments.formats.plain import PLAIN
from responsory.segments.formats.spec import Mode, Spec
from responsory.segments.formats.think import (
    GEMMA4_THOUGHT,
    KIMI_VL,
    MISTRAL_THINK,
    THINK,
    THINK_PREFILLED,
    reasoning_between,
)

FORMATS: Mapping[str, Spec] = {
    "plain": PLAIN,
    "think": THINK,
    "think_prefilled": THINK_PREFILLED,
    "mistral_think": MISTRAL_THINK,
    "kimi_vl": KIMI_VL,
    "gemma4_thought": GEMMA4_THOUGHT,
}
"""The specs by the name of the family."""

__all__ = [
    "FORMATS",
    "GEMMA4_THOUGHT",
    "KIMI_VL",
    "MISTRAL_THINK",
    "PLAIN",
    "THINK",
    "THINK_PREFILLED",
    "Mode",
    "Spec",
    "reasoning_between",
]
