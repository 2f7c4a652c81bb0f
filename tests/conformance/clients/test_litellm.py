"""litellm as a client of the server: its ``openai/`` models on chat and on Responses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.conftest import HELLO
from conformance.conftest import Server
from conformance.sdk.optional import conformance_package

conformance_package("litellm", only_found=True)

PROGRAM = str(Path(__file__).with_name("litellm_calls.py"))
HOT = {"temperature": 3}
FUNCTION: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
NESTED = {"tools": [{"type": "function", "function": FUNCTION}]}
FLAT = {"tools": [{"type": "function", **FUNCTION}]}
ASKED: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "chat": ("chat", "plain/hello", {}),
    "chat, reasoning": ("chat", "think/then-text", {}),
    "chat, refused": ("chat", "plain/hello", HOT),
    "chat, failed": ("chat", "plain/error-in-text", {}),
    "responses": ("responses", "plain/hello", {}),
    "responses, reasoning": ("responses", "think/then-text", {}),
    "responses, refused": ("responses", "plain/hello", HOT),
    "chat, tool": ("chat", "tools/weather", NESTED),
    "chat, two tools": ("chat", "tools/two-calls", NESTED),
    "responses, tool": ("responses", "tools/weather", FLAT),
    "responses, two tools": ("responses", "tools/two-calls", FLAT),
}
STREAMED: Mapping[str, dict[str, Any]] = {
    "chat": {"stream": True, "stream_options": {"include_usage": True}},
    "responses": {"stream": True},
}
Made = Mapping[tuple[str, bool], dict[str, Any]]


@pytest.fixture(scope="module", params=["HTTP/1.1", "HTTP/2"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def every_answer(replay_server: Server, scripted_server: Server) -> dict[str, dict[str, Any]]:
    """What litellm made of every call, by its title: one process, since it takes long to import.

    On Responses it has a client of its own, which speaks HTTP/1.1 whatever it is told here.
    """
    calls = {
        title(name, streamed, protocol): {
            "address": (scripted_server if "tool" in name else replay_server).api,
            "http2": protocol == "HTTP/2",
            "endpoint": endpoint,
            "model": model,
            "options": {**options, **(STREAMED[endpoint] if streamed else {})},
        }
        for name, (endpoint, model, options) in ASKED.items()
        for streamed in (False, True)
        for protocol in ("HTTP/1.1", "HTTP/2")
    }
    run = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(calls)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    made: dict[str, dict[str, Any]] = json.loads(run.stdout)
    return made


def title(name: str, streamed: bool, protocol: str) -> str:
    return f"{name} {'streamed' if streamed else 'unary'} {protocol}"


@pytest.fixture
def made(every_answer: dict[str, dict[str, Any]], protocol: str) -> Made:
    return {
        (name, streamed): every_answer[title(name, streamed, protocol)]
        for name in ASKED
        for streamed in (False, True)
    }


@pytest.mark.parametrize(("endpoint", "ending"), [("chat", "stop"), ("responses", "completed")])
def test_text(made: Made, endpoint: str, ending: str) -> None:
    unary = made[endpoint, False]
    assert unary == made[endpoint, True]
    assert (unary["text"], unary["reasoning"], unary["ending"]) == (HELLO, None, ending)
    assert unary["tokens"] > 0


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_reasoning(made: Made, endpoint: str) -> None:
    unary = made[f"{endpoint}, reasoning", False]
    assert unary == made[f"{endpoint}, reasoning", True]
    assert (unary["reasoning"], unary["text"]) == ("They greet me.", "Good day!")


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_calls(made: Made, endpoint: str) -> None:
    for what, cities in (("tool", ["Zürich"]), ("two tools", ["Oslo", "Rome"])):
        for streamed in (False, True):
            calls = made[f"{endpoint}, {what}", streamed]["calls"]
            assert [name for name, _ in calls] == ["get_weather"] * len(cities)
            assert [json.loads(arguments)["city"] for _, arguments in calls] == cities
    assert made["chat, tool", True]["ending"] == "tool_calls"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_a_refusal(made: Made, endpoint: str, streamed: bool) -> None:
    refused = made[f"{endpoint}, refused", streamed]
    assert "temperature" in refused["error"]
    assert "BadRequestError" in refused["kinds"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure(made: Made, streamed: bool) -> None:
    assert "The engine stopped unexpectedly" in made["chat, failed", streamed]["error"]


def test_each_was_asked_for_once(made: Made) -> None:
    counts = {key: answer["requests"] for key, answer in made.items() if key[0][:4] == "chat"}
    assert set(counts.values()) == {1}, counts
