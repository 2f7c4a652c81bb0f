"""Where a raw text begins, by what its prompt ends in."""

from __future__ import annotations

import pytest

from antiphon.runs.begun import begun
from responsory.commands import Reasoning, Text
from responsory.segments import Piece, Segmenter, family

OPENED = "<|im_start|>assistant\n"
CASES = [
    # family, end of the prompt, within a text, raw text, reasoning, answer
    ("think", OPENED, False, "<think>a</think>b", "a", "b"),
    ("think", f"{OPENED}<think>\n", False, "a</think>\n\nb", "a", "b"),
    ("think", f"{OPENED}<think>\n\n</think>\n\n", False, "b", "", "b"),
    ("think_prefilled", f"{OPENED}<think>\n", False, "a</think>b", "a", "b"),
    ("think_prefilled", f"{OPENED}<think></think>\n", False, "\nb", "", "b"),
    # A model whose template leaves the opener out, and a text that is only gone on with.
    ("think_prefilled", OPENED, False, "a</think>b", "a", "b"),
    ("think_prefilled", "Once upon", True, " a time", "", " a time"),
    ("think_prefilled", "Once <think>", True, "a</think>b", "a", "b"),
    ("think_prefilled", "Once", True, "<think>a</think>b", "a", "b"),
    ("mistral_think", "[THINK]", False, "a[/THINK]b", "a", "b"),
    ("gemma4_thought", "<|channel>thought\n", False, "a<channel|>b", "a", "b"),
    ("granite_thinking", "Here is my thought process:", True, "a Here is my response: b", "a", "b"),
    ("plain", "<think>", False, "a</think>b", "", "a</think>b"),
]


@pytest.mark.parametrize("calls", ["", "+hermes"])
def test_the_prompt_tells_where_thought_begins(calls: str) -> None:
    for name, end, within, raw, reasoning, answer in CASES:
        spec = begun(family(name + calls), end, within=within)
        for cut in range(len(raw)):
            segmenter = Segmenter(spec)
            said = segmenter.feed([Piece(text=raw[:cut])]) + segmenter.feed([Piece(text=raw[cut:])])
            said += segmenter.finish(cut=False)
            of = {kind: "".join(one.text for one in said if isinstance(one, kind))
                  for kind in (Reasoning, Text)}  # fmt: skip
            assert of == {Reasoning: reasoning, Text: answer}, (name, end, cut)


def test_what_the_prompt_does_not_change_is_the_family_itself() -> None:
    for name in ("think", "think_prefilled", "harmony", "plain", "hermes"):
        spec = family(name)
        assert begun(spec, OPENED) is spec
    assert begun(family("think_prefilled"), "<think>") is family("think_prefilled")
