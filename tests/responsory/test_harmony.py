"""The channels of harmony: each message in its place, whatever its header looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import Piece, Segmenter, family

if TYPE_CHECKING:
    from collections.abc import Iterable

START = "<|start|>assistant"
JSON = "<|constrain|>json<|message|>"
TO = f"<|channel|>commentary to=functions.f {JSON}"
ONE = ("call", "f", '{"a":"<|end|>é"}', True)
ARGUMENTS = ONE[2]


def read(parts: Iterable[str], *, cut: bool = False, **options: Any) -> list[Any]:
    """Reasoning, texts with their phase, and calls with their arguments and whether they closed."""
    segmenter = Segmenter(family("harmony"), **options)
    read: list[Any] = []

    def join(kind: object, text: str) -> None:
        before = read.pop()[1] if read and read[-1][0] == kind else ""
        read.append((kind, before + text))

    for part in [*parts, None]:
        found = segmenter.finish(cut=cut) if part is None else segmenter.feed([Piece(part, (1,))])
        for says in found:
            match says:
                case CallOpened():
                    read.append(("call", says.name, "", False))
                case CallInput():
                    read[-1] = ("call", read[-1][1], read[-1][2] + says.text, False)
                case CallClosed():
                    read[-1] = (*read[-1][:3], True)
                case Reasoning():
                    join("reasoning", says.text)
                case Text():
                    join(says.phase, says.text)
    return read


def in_all_cuts(text: str, **options: Any) -> list[Any]:
    whole = read([text], **options)
    assert read(list(text), **options) == whole
    for at in range(1, len(text)):
        assert read([text[:at], text[at:]], **options) == whole, at
    return whole


THOUGHT = "<|channel|>analysis<|message|>Hm."
FINAL = "<|channel|>final<|message|>Four."
HM, FOUR = ("reasoning", "Hm."), ("final_answer", "Four.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{THOUGHT}<|end|>{START}{FINAL}<|return|>", [HM, FOUR]),
        (f"{THOUGHT}<|end|>{START}<|channel|>commentary<|message|>I look.<|end|>{START}{TO}"
         f"{ARGUMENTS}<|call|>", [HM, ("commentary", "I look."), ONE]),
        # A message without its end is over where the next one begins; a call ends reasoning.
        (f"{THOUGHT}{START}{FINAL}", [HM, FOUR]),
        (f"{THOUGHT}{FINAL}", [HM, FOUR]),
        (f"{THOUGHT}{TO}{ARGUMENTS}<|call|>", [HM, ONE]),
        (f"{THOUGHT}{START}{TO}{ARGUMENTS}", [HM, ONE]),
        # Two calls, with and without what stands between them.
        (f"{TO}{ARGUMENTS}<|call|>{START}{TO}{ARGUMENTS}<|call|>", [ONE, ONE]),
        (f"{TO}{ARGUMENTS}{TO}{ARGUMENTS}", [ONE, ONE]),
        (f"{TO}{ARGUMENTS}<|end|>{START}{FINAL}", [ONE, FOUR]),
        # Other headers of a call.
        (f" to=functions.f<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>", [ONE]),
        (f"{THOUGHT}<|end|>{START} to=functions.f<|channel|>commentary {JSON}{ARGUMENTS}<|call|>",
         [HM, ONE]),
        (f"<|channel|>commentary to=functions.f<|message|>{ARGUMENTS}<|call|>", [ONE]),
        (f"<|channel|>commentary to=f json<|message|>{ARGUMENTS}<|call|>", [ONE]),
        (f"<|channel|>analysis to=functions.f code<|message|>{ARGUMENTS}<|call|>", [ONE]),
        ("<|channel|>analysis to=browser.search code<|message|>{}<|call|>",
         [("call", "browser.search", "{}", True)]),
        ("<|channel|>analysis to=python code<|message|>print(1)\n\nx<|call|>" + START + FINAL,
         [("call", "python", "print(1)\n\nx", True), FOUR]),
        ("<|channel|>commentary to=functions.f<|message|><|call|>", [("call", "f", "{}", True)]),
        # Text without a channel, before one too.
        ("Four. \n", [(None, "Four. \n")]),
        (f"Well.{FINAL}", [(None, "Well."), FOUR]),
        # What only looks like a header.
        ("<|channel|>other<|message|>Four.", [(None, "<|channel|>other<|message|>Four.")]),
        (f"{FINAL}<|chan to=functions.f <|en",
         [("final_answer", "Four.<|chan to=functions.f <|en")]),
        (f"{FINAL} <|channel|>commentary to= it.",
         [("final_answer", "Four. <|channel|>commentary to= it.")]),
        ("<|channel|>commentary to=functions.f " + "x" * 300,
         [(None, "<|channel|>commentary to=functions.f " + "x" * 300)]),
        (f"{THOUGHT}<|en", [("reasoning", "Hm.<|en")]),
        (f"<|channel|>analysis<|message|><|end|>{START}{FINAL}", [FOUR]),
    ],
)  # fmt: skip
def test_messages(text: str, expected: list[Any]) -> None:
    assert in_all_cuts(text) == expected


def test_a_cut_leaves_no_markup_and_no_whole_call() -> None:
    text = f"{THOUGHT}<|end|>{START}{TO}{ARGUMENTS}<|call|>"
    header = text.index(TO)
    for end in range(len(text)):
        shown = read([text[:end]], cut=True)
        assert read(list(text[:end]), cut=True) == shown
        for kind, *rest in shown:
            if kind == "call":
                assert ARGUMENTS.startswith(rest[1])
                assert not rest[2]
        if header + len("<|channel|>commentary to=") <= end < header + len(TO):
            assert shown == [HM]


def test_without_calls_and_without_reasoning() -> None:
    """Where no call is looked for its text passes as it is; hidden reasoning leaves the rest."""
    text = f"{TO}{{}}"
    assert in_all_cuts(text, calls=False) == [(None, text)]
    whole = f"{THOUGHT}<|end|>{START}{TO}{ARGUMENTS}<|call|>{START}{FINAL}"
    assert in_all_cuts(whole, reasoning=False) == [ONE, FOUR]
    assert in_all_cuts(whole, parallel=False) == [HM, ONE]


def test_its_name_is_that_of_both() -> None:
    assert family("harmony+harmony") == family("harmony")
    for name in ("think+harmony", "harmony+hermes"):
        with pytest.raises(KeyError, match="by channels"):
            family(name)
