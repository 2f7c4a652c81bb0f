"""The library README's handlers for bare Starlette and aiohttp, run as they stand."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import openai
import pytest

from conformance.handlers.conftest import FRAMEWORKS, Served, block
from responsory import events as ev
from responsory.projections import response_body
from responsory.testing import check_log, fold_responses
from responsory.testing.folds import parse


def test_the_answer_is_twenty_lines() -> None:
    code = block("async def answer(").partition("async def answer(")[2]
    body = code.partition("\n\n\n")[0]
    assert len([line for line in body.splitlines() if line.strip()]) <= 21
    for framework in FRAMEWORKS:
        assert len(block(f"from {framework}").splitlines()) <= 20


async def test_the_sdk_reads_the_stream(served: Served) -> None:
    client = openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    async with client, client.responses.stream(model="tiny", input="hi") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == 3
    assert final.output_text == "You said: hi"


async def test_the_stream_is_its_log(served: Served) -> None:
    raw = await served.stream()
    assert raw.endswith(b"data: [DONE]\n\n")
    check_log(served.log[:])
    assert fold_responses([raw]) == response_body(served.log)
    assert [type(event) for event in served.log if type(event) in ev.ENDINGS] == [ev.Completed]


async def test_texts_that_are_empty_send_nothing(served: Served) -> None:
    async def engine(prompt: str) -> AsyncGenerator[str]:
        for text in ("", prompt, ""):
            yield text

    served.program["engine"] = engine
    raw = await served.stream("a\nb\u2028é")
    assert raw.endswith(b"data: [DONE]\n\n")
    assert fold_responses([raw])["output"][0]["content"][0]["text"] == "a\nb\u2028é"


@pytest.mark.parametrize("words", [(), ("Hi", " the")])
async def test_a_failure_ends_the_stream(
    served: Served, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def engine(prompt: str) -> AsyncGenerator[str]:
        for word in words:
            yield word
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
    async def engine(prompt: str) -> AsyncGenerator[str]:
        yield "Hi"
        raise RuntimeError("out of memory")

    served.program["engine"] = engine
    client = openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
    async with client:
        stream = await client.responses.create(model="tiny", input="hi", stream=True)
        with pytest.raises(openai.APIError, match="The engine stopped unexpectedly"):
            async for _ in stream:
                pass
