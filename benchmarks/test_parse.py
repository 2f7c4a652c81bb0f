"""What it costs to turn the bytes of a body into a typed request, beside ``json.loads`` alone.

Everything between the last byte received and the typed request is in it: UTF-8, JSON, depth,
surrogates, types, constraints, unknown fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from time import perf_counter
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from antiphon.requests.chat import parse_chat
from antiphon.requests.completions import parse_completion
from antiphon.requests.json_body import parse_object
from antiphon.requests.responses import parse_response

Parse = Callable[[Mapping[str, Any]], object]

WORDS = (
    "the", "quick", "brown", "fox\njumps", "over", "a", '"lazy"', "dog", "while", "naïve", "users",
    "écrivent", "🙂",
)  # fmt: skip
PARAMETERS = {
    "name": "get_weather",
    "description": "Weather for a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def words(random: Random, size: int) -> str:
    return " ".join(random.choices(WORDS, k=size // 6 + 1))[:size]


def chat(count: int, size: int) -> dict[str, Any]:
    random = Random(1)
    roles = ("user", "assistant")
    return {
        "model": "tiny",
        "messages": [
            {"role": roles[index % 2], "content": words(random, size)} for index in range(count)
        ],
        "temperature": 0.7,
        "max_tokens": 256,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": PARAMETERS}],
    }


def response(count: int, size: int) -> dict[str, Any]:
    random = Random(1)
    kinds = (("user", "input_text"), ("assistant", "output_text"))
    return {
        "model": "tiny",
        "input": [
            {"role": role, "content": [{"type": kind, "text": words(random, size)}]}
            for role, kind in (kinds[index % 2] for index in range(count))
        ],
        "temperature": 0.7,
        "max_output_tokens": 256,
        "stream": True,
        "tools": [{"type": "function", **PARAMETERS}],
    }


def token_ids(count: int) -> dict[str, Any]:
    random = Random(1)
    return {"model": "tiny", "prompt": random.choices(range(100_000), k=count)}


SMALL_US, LARGE_US = 60, 3000
"""Microseconds that a body of 2 KB and one of 200 KB may take."""
CASES: list[tuple[str, Parse, dict[str, Any]]] = [
    ("chat, 2 KB", parse_chat, chat(6, 250)),
    ("responses, 2 KB", parse_response, response(6, 250)),
    ("chat, 200 KB in messages of 1 KB", parse_chat, chat(180, 1000)),
    ("responses, 200 KB in messages of 1 KB", parse_response, response(170, 1000)),
    ("chat, 200 KB in messages of 100 B", parse_chat, chat(1350, 100)),
    ("responses, 200 KB in messages of 100 B", parse_response, response(1050, 100)),
    ("completions, 200 KB of token ids", parse_completion, token_ids(34_000)),
]


@pytest.mark.benchmark(group="bytes to a typed request, beside json.loads of the same bytes")
@pytest.mark.parametrize(
    ("parse", "body"), [case[1:] for case in CASES], ids=[name for name, *_ in CASES]
)
def test_parse(benchmark: BenchmarkFixture, parse: Parse, body: dict[str, Any]) -> None:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    benchmark(lambda: parse(parse_object(data)))
    assert benchmark.stats is not None  # it is None where benchmarks are switched off
    took = benchmark.stats.stats.min
    alone = min(seconds(lambda: json.loads(data)) for _ in range(20))
    benchmark.extra_info |= {
        "ratio": took / alone,
        "at most": None,
        "bytes": len(data),
        "us": took * 1e6,
        "us at most": SMALL_US if len(data) < 10_000 else LARGE_US,
    }


def seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began
