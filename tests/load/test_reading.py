"""What the clients of the load notice: each way in which an answer can be lost."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from benchmarks.mixed_load.asks import CHAT, RESPONSES, Ask
from benchmarks.mixed_load.reading import Told, tell

STREAM = Ask("any", CHAT, {"stream": True})


def sse(*events: Any) -> bytes:
    frames = (one if isinstance(one, str) else json.dumps(one) for one in events)
    return "".join(f"data: {frame}\n\n" for frame in frames).encode()


def chunk(index: int, text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return {"choices": [choice]}


USAGE = {"choices": [], "usage": {"completion_tokens": 3}}


async def told(ask: Ask, data: bytes, status: int = 200) -> Told:
    """What the client says when the server answers with this."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=data))
    async with httpx.AsyncClient(transport=transport, base_url="http://any") as client:
        return await tell(client, "m", ask)


async def test_a_whole_stream() -> None:
    data = sse(chunk(0, "a"), chunk(1, "b", "length"), chunk(0, "c", "stop"), USAGE, "[DONE]")
    got = await told(STREAM, data)
    assert (got.choices, got.tokens, got.trouble) == ((("ac", "stop"), ("b", "length")), 3, "")


@pytest.mark.parametrize(
    ("data", "trouble"),
    [
        (sse(chunk(0, "a", "stop"), USAGE), "0 ends of the stream"),
        (sse(chunk(0, "a", "stop"), "[DONE]", "[DONE]"), "2 ends of the stream"),
        (sse(chunk(0, "a", "stop"), "[DONE]", USAGE), "1 ends of the stream"),
        (sse(chunk(0, "a"), "[DONE]"), "1 choices and 0 ends"),
        (sse(chunk(0, "a", "stop"), chunk(1, "b"), "[DONE]"), "2 choices and 1 ends"),
        (sse(chunk(0, "a", "stop"), chunk(0, "", "stop"), "[DONE]"), "goes on after its end"),
        (sse({"error": {"code": "server_error"}}, "[DONE]"), "an error in the stream"),
        (sse("[DONE]"), "0 choices and 0 ends"),
        (b"data: {\n\n", "JSONDecodeError"),
    ],
)
async def test_a_stream_with_something_lost(data: bytes, trouble: str) -> None:
    assert trouble in (await told(STREAM, data)).trouble


async def test_events_of_a_response() -> None:
    ask = Ask("any", RESPONSES, {"stream": True})
    delta = {"type": "response.output_text.delta", "delta": "ab"}
    output = [{"content": [{"text": "ab"}]}]
    body = {"output": output, "status": "completed", "usage": {"output_tokens": 2}}
    end = {"type": "response.completed", "response": body}
    assert (await told(ask, sse(delta, end, "[DONE]"))).choices == (("ab", "completed"),)
    assert "terminal" in (await told(ask, sse(delta, "[DONE]"))).trouble
    assert "terminal" in (await told(ask, sse(delta, end, end, "[DONE]"))).trouble
    assert "terminal" in (await told(ask, sse(end, delta, "[DONE]"))).trouble
    assert "deltas" in (await told(ask, sse(delta, delta, end, "[DONE]"))).trouble


async def test_a_refusal_and_half_a_body() -> None:
    unary = Ask("any", CHAT, {})
    assert (await told(unary, b'{"error": {}}', 503)).trouble.startswith("503")
    assert (await told(STREAM, b'{"error": {}}', 400)).trouble.startswith("400")
    assert "JSONDecodeError" in (await told(unary, b'{"choices": [')).trouble
    assert "KeyError" in (await told(unary, b"{}")).trouble


async def test_a_client_that_leaves_reads_no_further() -> None:
    leaving = Ask("any", CHAT, {"stream": True}, 10)
    assert (await told(leaving, sse(chunk(0, "a"), "[DONE]"))).left
