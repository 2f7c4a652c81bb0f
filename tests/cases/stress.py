"""Cases that are too large to be stored: a megabyte of arguments, brackets a thousand deep.

Each is made of a stored case of its family, whose value is put in the place of another.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from functools import cache
from typing import Any

import attrs

from antiphon.engines.port import Finish
from antiphon.engines.recording import RecordedChoice
from antiphon.engines.recording_rows import StepRow
from cases.files import Case, cases

MEGABYTE = 1_000_000
DEPTH = 1_000
STEP = 500
"""Characters of a token of these: they are about size, and short steps are tried otherwise."""
LIST = re.compile(r"""\[(?:1, ?)?\{["']?[kq]["']?: ?\S+?\}(?:, ?2)?\]""")
"""The innermost list of a ``rich`` case, as any family writes it."""


@cache
def stressed() -> tuple[Case, ...]:
    """Both of each family of calls."""
    return tuple(case for case in cases() if case.subject == "tools" for case in _made(case))


def is_stressed(case: Case) -> bool:
    """Whether it is one of these."""
    return case.name.endswith(("-long", "-deep"))


def _made(case: Case) -> Iterator[Case]:
    """Long of ``…-one``, deep of ``…-rich``."""
    family, _, variant = case.name.rpartition("-")
    (item, *_) = case.expect["output"]
    if variant == "one":
        city = json.loads(item["arguments"])["city"]
        yield _evolved(case, f"{family}-long", city, "x" * MEGABYTE, city, "x" * MEGABYTE)
    elif variant == "rich":
        deep = "[" * DEPTH + "]" * DEPTH
        value, written = LIST.search(item["arguments"]), LIST.search(case.text)
        assert value is not None
        assert written is not None, case.text
        yield _evolved(case, f"{family}-deep", written[0], deep, value[0], deep)


def _evolved(case: Case, name: str, old: str, new: str, shown: str, shows: str) -> Case:
    assert case.recording is not None
    assert case.text.count(old) == 1
    (item,) = case.expect["output"]
    assert item["arguments"].count(shown) == 1
    text = case.text.replace(old, new)
    steps = [
        StepRow(ms=at, choice=0, ids=array("I", [1]), text=text[at : at + STEP], spelling=None)
        for at in range(0, len(text), STEP)
    ]
    choice = RecordedChoice(steps=steps, end_ms=len(text), finish=Finish.STOP, error=None)
    usage = {"input_tokens": case.recording.prompt_tokens, "output_tokens": len(steps)}
    expect: dict[str, Any] = {
        **case.expect,
        "output": [{**item, "arguments": item["arguments"].replace(shown, shows)}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }
    recording = attrs.evolve(case.recording, name=name, choices=(choice,))
    return attrs.evolve(case, name=name, recording=recording, expect=expect)
