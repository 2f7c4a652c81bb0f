"""What recordings with reasoning come to, said by hand: a golden can be updated by mistake."""

from __future__ import annotations

import json

import pytest

from golden.folders import read
from golden.playing import RECORDINGS, STOPS

Item = tuple[str, str]

EXPECTED: dict[str, tuple[str, list[Item], int]] = {
    "then-text": ("completed", [("reasoning", "They greet me."), ("message", "Good day!")], 6),
    "prefilled": (
        "completed",
        [("reasoning", "Three times seven."), ("message", "Twenty-one.")],
        5,
    ),
    "prefilled-opened-again": ("completed", [("reasoning", "Odd."), ("message", "Even.")], 2),
    "markers-in-pieces": ("completed", [("reasoning", "So be it"), ("message", "Fine by me.")], 1),
    "two-blocks": (
        "completed",
        [
            ("reasoning", "One."),
            ("message", "First,"),
            ("reasoning", "Two."),
            ("message", "second."),
        ],
        4,
    ),
    "empty-block": ("completed", [("message", "Good morning.")], 1),
    "stray-closer": ("completed", [("message", "left handright hand")], 0),
    "lookalike": (
        "completed",
        [("reasoning", "a </thing> or </\ntwo"), ("message", "on <thin ice>, x < y <thi")],
        8,
    ),
    "space-around-markers": (
        "completed",
        [("reasoning", "weigh  it"), ("message", "Four  kilos. \n")],
        5,
    ),
    "several-tokens-a-step": (
        "completed",
        [("reasoning", "add them up"), ("message", "Seven.")],
        3,
    ),
    "logprobs": ("completed", [("reasoning", "Add. Now"), ("message", "Seven.")], 3),
    "unicode": ("completed", [("reasoning", "größer als 🇫🇷"), ("message", "日本")], 21),
    "stop-string": ("completed", [("reasoning", "The END is near."), ("message", "In the ")], 3),
    "length-in-reasoning": ("incomplete", [("reasoning", "On the one hand")], 4),
    "length-in-closer": ("incomplete", [("reasoning", "Hm. </thi")], 4),
    "length-after-opener": ("incomplete", [("message", "")], 1),
    "hold-in-reasoning": ("cancelled", [("reasoning", "Let me")], 2),
    "error-in-reasoning": ("failed", [("reasoning", "Let me see")], 3),
}
"""Status, items and reasoning tokens by recording."""


def test_every_recording_with_reasoning_is_here() -> None:
    assert {f"think/{name}" for name in EXPECTED} == {
        name for name in RECORDINGS if name.startswith("think/")
    }
    assert set(STOPS) <= set(RECORDINGS)


@pytest.mark.parametrize("name", EXPECTED)
def test_items_and_counts(name: str) -> None:
    status, items, reasoning_tokens = EXPECTED[name]
    body = json.loads(read(f"think/{name}")["responses.json"])
    shown = [
        (item["type"], "".join(part["text"] for part in item["content"])) for item in body["output"]
    ]
    assert (body["status"], shown) == (status, items)
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] == reasoning_tokens
    ended = ["completed"] * (len(items) - 1) + [
        "completed" if status == "completed" else "incomplete"
    ]
    assert [item["status"] for item in body["output"]] == ended


def test_reasoning_has_no_logprobs_and_the_answer_has_all() -> None:
    chat = json.loads(read("think/logprobs")["chat.json"])
    tokens = [entry["token"] for entry in chat["choices"][0]["logprobs"]["content"]]
    assert tokens == ["Se", "ven", "."]


def test_a_stop_string_in_the_answer_is_told() -> None:
    chat = json.loads(read("think/stop-string")["chat.json"])
    assert chat["choices"][0]["stop_reason"] == "END"
    assert chat["usage"]["completion_tokens"] == 8
