"""What recordings with calls come to, said by hand: a golden can be updated by mistake."""

from __future__ import annotations

import json

import pytest

from golden.folders import read
from golden.playing import RECORDINGS

SAIL = ("sail", '{"to": "Visby"}')
MOOR = ("moor", '{"berth": 7}')
CAST_OFF = ("cast_off", "{}")

EXPECTED: dict[str, tuple[str, list[tuple[str, str]], int]] = {
    "call": ("tool_calls", [("message", "Set sail."), SAIL], 24),
    "two-calls": ("tool_calls", [SAIL, MOOR], 37),
    "one-step": ("tool_calls", [("message", "So:"), SAIL, MOOR, ("message", "Done.")], 44),
    "without-arguments": ("tool_calls", [CAST_OFF], 10),
    "markers-in-pieces": (
        "tool_calls",
        [("message", "Go."), ("sail", "{}"), ("message", "Gone.")],
        9,
    ),
    "quoted-marker": (
        "stop",
        [("message", "Put <tool_call> first and </tool_call> last.")],
        9,
    ),
    "lookalike": ("stop", [("message", 'a <tool_caller> <tool_call>{"names": 1}<tool_')], 10),
    "markers-in-arguments": (
        "tool_calls",
        [("log", r'{"it": "</tool_call> \"}{ <tool_call>\n\\"}')],
        9,
    ),
    "unicode": ("tool_calls", [("message", "é"), ("saïl", '{"to": "Malmö 🇸🇪"}')], 82),
    "logprobs": ("tool_calls", [("message", "Off!"), CAST_OFF, ("message", "Gone.")], 15),
    "stop-string": ("tool_calls", [("log", '{"it": "END"}'), ("message", "In the ")], 8),
    "missing-closer": ("tool_calls", [SAIL], 17),
    "length-in-arguments": ("length", [MOOR, ("sail", '{"to": "')], 33),
    "length-in-header": ("length", [("message", "Set sail.")], 11),
    "length-in-opener": ("length", [("message", "Set sail <tool_ca")], 4),
    "hold-in-arguments": ("cancelled", [("sail", '{"to": "')], 15),
    "error-in-arguments": ("failed", [("message", "Off."), ("sail", '{"to":')], 15),
    "after-thinking": ("tool_calls", [("reasoning", "West?"), SAIL, ("message", "Off!")], 27),
    "in-thinking": (
        "tool_calls",
        [("reasoning", "No <tool_call> yet."), CAST_OFF, ("message", "Off!")],
        18,
    ),
}
"""Finish reason, items (a call by its name) and output tokens by recording."""

STATUS = {"tool_calls": "completed", "stop": "completed", "length": "incomplete"}


def test_every_recording_with_calls_is_here() -> None:
    assert {f"hermes/{name}" for name in EXPECTED} == {
        name for name in RECORDINGS if name.startswith("hermes/")
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_items_and_counts(name: str) -> None:
    finish, items, output_tokens = EXPECTED[name]
    body = json.loads(read(f"hermes/{name}")["responses.json"])
    shown = [
        (item["name"], item["arguments"])
        if item["type"] == "function_call"
        else (item["type"], "".join(part["text"] for part in item["content"]))
        for item in body["output"]
    ]
    status = STATUS.get(finish, finish)
    assert (body["status"], shown) == (status, items)
    assert body["usage"]["output_tokens"] == output_tokens
    last = "completed" if status == "completed" else "incomplete"
    assert [item["status"] for item in body["output"]] == ["completed"] * (len(items) - 1) + [last]


@pytest.mark.parametrize("name", [name for name in EXPECTED if EXPECTED[name][0] in STATUS])
def test_the_chat_body_has_the_same_calls(name: str) -> None:
    finish, items, _ = EXPECTED[name]
    choice = json.loads(read(f"hermes/{name}")["chat.json"])["choices"][0]
    calls = [
        (call["function"]["name"], call["function"]["arguments"])
        for call in choice["message"].get("tool_calls") or ()
    ]
    assert calls == [item for item in items if item[0] not in ("message", "reasoning")]
    assert choice["finish_reason"] == finish


def test_calls_have_no_logprobs_and_the_answer_has_all() -> None:
    chat = json.loads(read("hermes/logprobs")["chat.json"])
    tokens = [entry["token"] for entry in chat["choices"][0]["logprobs"]["content"]]
    assert tokens == ["Off", "!", "Gone", "."]
