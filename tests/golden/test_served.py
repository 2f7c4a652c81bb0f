"""The server itself, with its replay engine, sends the golden bytes.

Only what a golden fixes and a live server has otherwise is put in its place: the clock, the model's
name, and that nothing is stored.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from api.conftest import Bench, benches
from golden.built import TOOLS
from golden.folders import read
from golden.playing import RECORDINGS, STOPS, calls
from responsory.values import JSON

PATHS = {
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
}
PROMPTS: dict[str, dict[str, Any]] = {
    "responses": {"input": "Hi"},
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "completions": {"prompt": "Hi", "max_tokens": 1000},
}
# A held recording ends when its reader leaves, and choices come as their steps do.
NAMES = [
    name
    for name, recording in RECORDINGS.items()
    if len(recording.choices) == 1 and not recording.choices[0].holds
]
# The raw text is the completion there, markers included.
PLAIN = [name for name in NAMES if RECORDINGS[name].family == "plain"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async for each in benches():
        yield each


def request(endpoint: str, name: str) -> dict[str, Any]:
    """The request whose answer the golden stream is."""
    body: dict[str, Any] = {"model": name, "stream": True, **PROMPTS[endpoint]}
    if endpoint != "responses":
        body["stream_options"] = {"include_usage": True}
    if calls(RECORDINGS[name]):
        body["tools"] = TOOLS if endpoint == "responses" else _nested(TOOLS)
    if name in STOPS:
        body["stop"] = list(STOPS[name])
    if RECORDINGS[name].choices[0].spelled:
        if endpoint == "chat":
            body["logprobs"] = True
        body["logprobs" if endpoint == "completions" else "top_logprobs"] = 3
    return body


def _nested(tools: JSON) -> JSON:
    """Tools as the chat API has them."""
    assert isinstance(tools, Sequence)
    return [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
        for tool in tools
        if isinstance(tool, Mapping)
    ]


def fixed(stream: str, name: str) -> str:
    stream = re.sub(r'"(created|created_at)":\d+', r'"\1":1764500000', stream)
    stream = re.sub(r'"completed_at":\d+', '"completed_at":1764500001', stream)
    return stream.replace(f'"model":"{name}"', '"model":"tiny"').replace(
        '"store":false', '"store":true'
    )


async def served(bench: Bench, endpoint: str, name: str) -> str:
    answer = await bench.client.post(
        PATHS[endpoint], json=request(endpoint, name), headers={"x-request-id": "r1"}
    )
    assert answer.status_code == 200
    stream = await answer.get_data(as_text=True)
    assert isinstance(stream, str)
    return fixed(stream, name)


@pytest.mark.wire("G1", "S10")
@pytest.mark.parametrize("endpoint", ["responses", "chat"])
@pytest.mark.parametrize("name", NAMES)
async def test_responses_and_chat(bench: Bench, name: str, endpoint: str) -> None:
    assert await served(bench, endpoint, name) == read(name)[f"{endpoint}.sse"].decode()


@pytest.mark.parametrize("name", PLAIN)
async def test_completions(bench: Bench, name: str) -> None:
    assert await served(bench, "completions", name) == read(name)["completions.sse"].decode()
