"""What reading one token costs: plain text, and the arguments of a call.

Each token is a piece of its own, given as a server gives it: a glance first, and a feed where that
took nothing. Beside it, a round of the same tokens through ``str.find``, the least that could be
done with each. ``us`` is the median of a token's time.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
from benchmarks.ratios import beside
from pytest_benchmark.fixture import BenchmarkFixture

from responsory.commands import CallInput
from responsory.segments import Piece, Segmenter, Tool, Tools, family

TOKENS = 8192
ARGUMENTS = {
    "city": "São Paulo",
    "unit": "celsius",
    "days": [1, 2, 3.5, 40],
    "detail": {"wind": True, "rain": None},
    "note": 'A note of some length, with "quotes" and a\nline break, as one writes to a colleague.',
    "tags": ["a", "b c"],
}
TOKEN = re.compile(r' ?\w+|\\.|[": ,{}\[\]]+|\S')
"""About what a vocabulary makes of JSON: words with their space, escapes, runs of structure."""


def tokens_of(text: str) -> list[str]:
    """That text again and again."""
    once = TOKEN.findall(text)
    return (once * (TOKENS // len(once) + 1))[:TOKENS]


STRING = json.dumps(ARGUMENTS["note"])[1:-1]
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"note": {"type": "string"}}}
BEGUN = {
    "hermes": '<tool_call>{"name": "f", "arguments": {"all": [0,',
    "mistral_args": '[TOOL_CALLS]f[ARGS]{"all": [0,',
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
        '<|tool_call_argument_begin|>{"all": [0,'
    ),
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=note>\n",
    "pythonic": "[f(note='",
    "gemma4": '<|tool_call>call:f{note:<|"|>',
}
"""A call that stands open in its arguments."""


@attrs.frozen
class Reading:
    """``family``: that reads. ``begun``: the text before the tokens. ``bar``: µs a token."""

    family: str
    begun: str
    tokens: list[str]
    bar: float
    kind: str = "function"


WORDS = [f" w{at % 997}" for at in range(TOKENS)]
JSON = tokens_of(", " + json.dumps(ARGUMENTS, ensure_ascii=False))
PROSE = tokens_of(" A note of some length, as one writes to a colleague")
READINGS = {
    "plain text": Reading("plain", "", WORDS, 0.25),
    "plain text, calls looked for": Reading("think+hermes", "", WORDS, 0.25),
    **{
        f"arguments, {name}": Reading(
            name, begun, JSON if begun.endswith(",") else PROSE, 1.0
        )
        for name, begun in BEGUN.items()
    },
    "custom input, hermes": Reading(
        "hermes",
        '<tool_call>{"name": "f", "arguments": {"input": "',
        tokens_of(STRING + " "),
        1.0,
        "custom",
    ),
}  # fmt: skip


@pytest.mark.benchmark(group=f"segments: {TOKENS} tokens, beside str.find in each")
@pytest.mark.parametrize("name", READINGS)
def test_a_token(benchmark: BenchmarkFixture, name: str) -> None:
    reading = READINGS[name]
    spec = family(reading.family)
    custom = reading.kind == "custom"
    tools = Tools([Tool("f", "custom") if custom else Tool("f", parameters=SCHEMA)])
    pieces = [(Piece(text, (1,)),) for text in reading.tokens]

    def opened() -> tuple[Segmenter]:
        segmenter = Segmenter(spec, tools=tools)
        if reading.begun:
            segmenter.feed([Piece(reading.begun)])
            assert isinstance(segmenter.feed([Piece(" 1")])[-1], CallInput)
        return (segmenter,)

    def play(segmenter: Segmenter) -> None:
        for step in pieces:
            if segmenter.glance(step[0].text) is None:
                segmenter.feed(step)

    def find() -> None:
        for step in pieces:
            step[0].text.find("<")

    times = []
    for _ in range(9):
        (segmenter,) = opened()
        begin = time.perf_counter()
        play(segmenter)
        times.append((time.perf_counter() - begin) / TOKENS * 1e6)
    benchmark.extra_info["us"] = statistics.median(times)
    benchmark.extra_info["us at most"] = reading.bar
    beside(benchmark, play, find, setup=opened)
