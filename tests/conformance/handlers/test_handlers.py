"""The library README's handlers for bare Starlette and aiohttp, run as they stand."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import openai
import pytest

from conformance.handlers.conftest import README, TWENTY, Engine, Served, block, serving_handler
from responsory import events as ev
from responsory.projections import response_body
from responsory.segments import Piece
from responsory.testing import check_log, fold_responses
from responsory.testing.folds import parse


def test_a_whole_handler_is_twenty_lines() -> None:
    """From its definition to the response that it returns, both included."""
    code = block(TWENTY)
    handler = code[code.index("async def create(") : code.index("\n\n\nasync def engine(")]
    lines = [line for line in handler.splitlines() if line.strip()]
    assert lines[-1].strip().startswith("return StreamingResponse(")
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 100
    assert ";" not in handler


def test_it_is_the_first_thing_in_a_server() -> None:
    section = README.read_text(encoding="utf-8").split("\n## In a server\n")[1]
    assert section.split("```python\n")[1].startswith(block(TWENTY))


async def test_the_sdk_reads_the_stream(served: Served) -> None:
    client = openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    async with client, client.responses.stream(model="tiny", input="hi") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == 3
    assert final.output_text == "You said: hi"
    assert final.usage is not None
    assert final.usage.output_tokens == 3


async def test_the_stream_is_its_log(served: Served) -> None:
    raw = await served.stream()
    assert raw.endswith(b"data: [DONE]\n\n")
    check_log(served.log[:])
    assert fold_responses([raw]) == response_body(served.log)
    assert [type(event) for event in served.log if type(event) in ev.ENDINGS] == [ev.Completed]


async def test_texts_that_are_empty_send_nothing(served: Served) -> None:
    async def engine(prompt: str) -> AsyncGenerator[Piece]:
        for text in ("", prompt, ""):
            yield Piece(text, (0,))

    served.program["engine"] = engine
    raw = await served.stream("a\nb\u2028é")
    assert raw.endswith(b"data: [DONE]\n\n")
    assert fold_responses([raw])["output"][0]["content"][0]["text"] == "a\nb\u2028é"


@pytest.mark.parametrize("words", [(), ("Hi", " the")])
async def test_a_failure_ends_the_stream(
    served: Served, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def engine(prompt: str) -> AsyncGenerator[Piece]:
        for word in words:
            yield Piece(word, (0,))
        raise RuntimeError("out of memory")

    served.program["engine"] = engine
    with caplog.at_level(logging.ERROR):
        frames = parse([await served.stream()])
    assert "out of memory" in caplog.text
    assert [name for name, _ in frames][-3:] == ["error", "response.failed", None]
    failed, done = frames[-2][1]["response"], frames[-1][1]
    assert done == "[DONE]"
    assert failed["status"] == "failed"
    assert failed["error"]["message"] == "The engine stopped unexpectedly."
    assert [item["content"][0]["text"] for item in failed["output"]] == ["".join(words)] * bool(
        words
    )
    check_log(served.log[:])
    assert [type(event) for event in served.log if type(event) in ev.ENDINGS] == [ev.Failed]


async def test_a_failure_reaches_the_sdk(served: Served) -> None:
    async def engine(prompt: str) -> AsyncGenerator[Piece]:
        yield Piece("Hi", (0,))
        raise RuntimeError("out of memory")

    served.program["engine"] = engine
    client = openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    async with client:
        stream = await client.responses.create(model="tiny", input="hi", stream=True)
        with pytest.raises(openai.APIError, match="The engine stopped unexpectedly"):
            async for _ in stream:
                pass


@pytest.mark.parametrize("name", ["starlette", "aiohttp"])
async def test_a_stop_string_ends_the_engine(name: str) -> None:
    engine = Engine(talks=True)
    async with serving_handler(name) as served:
        served.program["engine"] = engine
        raw = await served.stream(stop=["in ag"])
        assert engine.closed.is_set()
        check_log(served.log[:])
        (ending,) = (event for event in served.log if isinstance(event, ev.Completed))
    assert ending.stop == "in ag"
    assert fold_responses([raw])["output"][0]["content"][0]["text"] == "Hi aga"


@pytest.mark.parametrize("name", ["starlette", "aiohttp"])
async def test_text_that_was_held_is_sent_at_the_end(name: str) -> None:
    async with serving_handler(name) as served:
        raw = await served.stream("EN", stop=["END"])
    assert fold_responses([raw])["output"][0]["content"][0]["text"] == "You said: EN"


@pytest.mark.parametrize("name", ["starlette", "aiohttp"])
@pytest.mark.parametrize("body", [{}, {"input": "hi", "stop": [""]}])
async def test_a_bad_body_is_an_error_before_the_stream_begins(
    name: str, body: dict[str, Any]
) -> None:
    async with serving_handler(name) as served, httpx.AsyncClient() as client:
        response = await client.post(f"{served.url}/v1/responses", json=body)
    assert response.status_code == 500


@pytest.mark.parametrize("name", ["starlette", "aiohttp"])
async def test_no_stop_string_is_none(name: str) -> None:
    async with serving_handler(name) as served:
        raw = await served.stream(stop=None)
    assert fold_responses([raw])["output"][0]["content"][0]["text"] == "You said: hi"
