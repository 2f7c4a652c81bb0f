"""Reasoning between an opener and a closer, before the answer or anywhere in it.

Examples, as the model writes them (a template that ends in the opener leaves it out)::

    <think>Two plus two.</think>Four.
    [THINK]Two plus two.[/THINK]Four.
    ◁think▷Two plus two.◁/think▷Four.
    <|channel>thought
    Two plus two.<channel|>Four.

A closer without an opener is dropped, and so is an opener directly after one: a model whose
template has opened the block may open it again. Later in the block it is the model's own text.
"""

from __future__ import annotations

from responsory.commands import Reasoning, Text
from responsory.segments.formats.spec import Mode, Spec


def reasoning_between(opener: str, closer: str, *, prefilled: bool = False) -> Spec:
    """``prefilled``: the prompt ends in the opener, so the raw text begins inside the block."""
    modes = {
        "answer": Mode(Text, {opener: "opened", closer: "answer"}),
        "opened": Mode(Reasoning, {opener: "opened", closer: "answer"}, then="reasoning"),
        "reasoning": Mode(Reasoning, {closer: "answer"}),
    }
    return Spec(modes, "opened" if prefilled else "answer", prefilled)


THINK = reasoning_between("<think>", "</think>")
"""DeepSeek R1, Qwen3, GLM, MiniMax and most others."""
THINK_PREFILLED = reasoning_between("<think>", "</think>", prefilled=True)
"""The same, where the chat template opens the block."""
MISTRAL_THINK = reasoning_between("[THINK]", "[/THINK]")
KIMI_VL = reasoning_between("◁think▷", "◁/think▷")
GEMMA4_THOUGHT = reasoning_between("<|channel>thought", "<channel|>")
