"""The rules of reasoning hold for each family that marks it, in every cut."""

from __future__ import annotations

from typing import Any

import pytest

from responsory.commands import CallInput, Reasoning, Text
from responsory.segments import Piece, Segmenter, family

MARKS = {
    "think": ("<think>", "</think>"),
    "think_prefilled": ("<think>", "</think>"),
    "mistral_think": ("[THINK]", "[/THINK]"),
    "kimi_vl": ("◁think▷", "◁/think▷"),
    "gemma4_thought": ("<|channel>thought", "<channel|>"),
    "cohere_thinking": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "granite_thinking": ("Here is my thought process:", "Here is my response:"),
}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def read(parts: list[str], name: str) -> list[tuple[str, str]]:
    segmenter = Segmenter(family(name))
    shown: list[tuple[str, str]] = []
    for part in [*parts, None]:
        found: list[Any] = (
            segmenter.finish() if part is None else segmenter.feed([Piece(part, (1,))])
        )
        for says in found:
            if isinstance(says, Text | Reasoning | CallInput):
                kind, before = type(says).__name__.lower(), ""
                if shown and shown[-1][0] == kind:
                    before = shown.pop()[1]
                shown.append((kind, before + says.text))
    return shown


@pytest.mark.parametrize("name", sorted(MARKS))
def test_the_rules(name: str) -> None:
    opener, closer = MARKS[name]
    begin = "" if name == "think_prefilled" else opener
    hm, so, call = ("reasoning", "Hm."), ("text", "So."), ("callinput", '{"a": 1}')
    rows = [
        (f"{begin}\nHm.\n\n{closer}\n\nSo.", [hm, so]),
        # An empty block is none, and an opener at its beginning may come twice.
        (f"{begin}\n\n{closer}\nSo.", [so]),
        # A part of the closer at the end is of the thought, and so is an opener inside it.
        (f"{begin}Hm.{closer[:-1]}", [("reasoning", f"Hm.{closer[:-1]}")]),
        (f"{begin}Hm. {opener} x{closer}So.", [("reasoning", f"Hm. {opener} x"), so]),
        # A call ends it, with its closer or without; a closer that follows is dropped.
        (f"{begin}Hm.{closer}{CALL}", [hm, call]),
        (f"{begin}Hm.{CALL}", [hm, call]),
        (f"{begin}Hm.{CALL}\nSo.", [hm, call, so]),
    ]
    if name != "granite_thinking":  # whose marks are words, and known at the beginning alone
        rows += [
            (f"{begin}{opener}Hm.{closer}So.", [hm, so]),
            (f"{begin}Hm.{CALL}{closer}So.", [hm, call, so]),
            (f"{begin}Hm.{closer}So.{closer}", [hm, so]),
        ]
        if begin:
            rows.append((f"{closer}So.", [so]))
    else:
        rows += [
            (f"So. {opener} Hm.", [("text", f"So. {opener} Hm.")]),
            ("Here's my thought process: Hm. Here's my response: So.", [hm, so]),
        ]
    for text, expected in rows:
        both = f"{name}+hermes"
        assert read([text], both) == expected, text
        assert read(list(text), both) == expected, text
        for at in range(1, len(text)):
            assert read([text[:at], text[at:]], both) == expected, (text, at)


def test_the_answer_of_cohere_has_marks_of_its_own() -> None:
    text = "<|START_THINKING|>Hm.<|END_THINKING|>\n<|START_RESPONSE|> So. x<|END_RESPONSE|>"
    for at in range(len(text)):
        assert read([text[:at], text[at:]], "cohere_thinking") == [
            ("reasoning", "Hm."),
            ("text", "So. x"),
        ]
