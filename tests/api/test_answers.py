"""Every recording on every endpoint: the stream and the body say the same, and end properly."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.engines.port import Finish
from antiphon.engines.recording import load_recordings
from api.conftest import FIXTURES, Bench
from api.sse import chunks, events, fold_chat, fold_completions

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
RECORDINGS = load_recordings(FIXTURES)
NAMES = list(RECORDINGS)
ENDLESS = {name for name in NAMES if RECORDINGS[name].choice(0).holds}
FAILING = {name for name in NAMES if RECORDINGS[name].choice(0).finish is Finish.ERROR} - ENDLESS
ANSWERED = [name for name in NAMES if name not in ENDLESS | FAILING]

USER = {"messages": [{"role": "user", "content": "hi"}]}
FIXED = {"x-request-id": "r1"}
NONE: dict[str, list[Any]] = {"content": [], "tokens": []}
"""Logprobs of an answer in which no token was seen: a body has null for them."""


async def post(bench: Bench, path: str, **body: Any) -> Any:
    response = await bench.client.post(path, json=body, headers=FIXED)
    assert response.status_code == 200, await response.get_data()
    assert response.headers["x-request-id"] == "r1"
    if not body.get("stream"):
        assert int(response.headers["openai-processing-ms"]) >= 0
        return await response.get_json()
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    return await response.get_data()


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", ANSWERED)
async def test_chat(bench: Bench, name: str, n: int) -> None:
    body = {**USER, "model": name, "n": n, "logprobs": True, "top_logprobs": 1}
    unary = await post(bench, CHAT, **body)
    usage = {"stream_options": {"include_usage": True}}
    data = await post(bench, CHAT, **body, stream=True, **usage)
    assert fold_chat(data) == [
        {
            "content": choice["message"]["content"],
            "reasoning": choice["message"]["reasoning_content"] or "",
            "finish_reason": choice["finish_reason"],
            "tokens": [entry["token"] for entry in (choice["logprobs"] or NONE)["content"]],
        }
        for choice in unary["choices"]
    ]
    assert chunks(data)[-1]["usage"] == unary["usage"]
    assert unary["id"] == chunks(data)[0]["id"] == "chatcmpl-r1"
    roles = [c["choices"][0]["delta"].get("role") for c in chunks(data) if c["choices"]]
    assert roles == ["assistant"] * n + [None] * (len(roles) - n)


@pytest.mark.parametrize("name", ANSWERED)
async def test_completions(bench: Bench, name: str) -> None:
    body = {"model": name, "prompt": ["a", "b"], "n": 2, "max_tokens": 1000, "logprobs": 1}
    unary = await post(bench, COMPLETIONS, **body)
    data = await post(
        bench, COMPLETIONS, **body, stream=True, stream_options={"include_usage": True}
    )
    assert fold_completions(data) == [
        {
            "text": choice["text"],
            "finish_reason": choice["finish_reason"],
            "tokens": (choice["logprobs"] or NONE)["tokens"],
        }
        for choice in unary["choices"]
    ]
    assert [choice["index"] for choice in unary["choices"]] == [0, 1, 2, 3]
    assert chunks(data)[-1]["usage"] == unary["usage"]
    for choice in unary["choices"]:
        logprobs = choice["logprobs"]
        assert (logprobs is None) == (choice["text"] == "")
        if logprobs is None:
            continue
        assert len({len(column) for column in logprobs.values()}) == 1
        for offset, token in zip(logprobs["text_offset"], logprobs["tokens"], strict=True):
            assert choice["text"][offset:].startswith(token) or "\ufffd" in token


@pytest.mark.parametrize("name", ANSWERED)
async def test_responses(bench: Bench, name: str) -> None:
    body = {"model": name, "input": "hi", "include": ["message.output_text.logprobs"]}
    unary = await post(bench, RESPONSES, **body)
    data = await post(bench, RESPONSES, **body, stream=True)
    frames = events(data)[:-1]
    assert [kind for kind, _ in frames] == [frame["type"] for _, frame in frames]
    assert [frame["sequence_number"] for _, frame in frames] == list(range(len(frames)))
    final = frames[-1][1]["response"]
    times = {"created_at", "completed_at"}
    assert {k: v for k, v in final.items() if k not in times} == {
        k: v for k, v in unary.items() if k not in times
    }
    assert list(final) == list(unary)
    assert len(unary) == 33
    deltas = [f for kind, f in frames if kind and kind.endswith(".delta")]
    for index, item in enumerate(final["output"]):
        own = [delta["delta"] for delta in deltas if delta["output_index"] == index]
        assert "".join(own) == item["content"][0]["text"]
        assert "" not in own
    assert unary["store"] is False


@pytest.mark.parametrize("name", sorted(FAILING))
async def test_engine_failures(bench: Bench, name: str) -> None:
    for path, extra in ((CHAT, USER), (COMPLETIONS, {"prompt": "x"}), (RESPONSES, {"input": "x"})):
        response = await bench.client.post(path, json={"model": name, **extra})
        assert response.status_code == 500
        assert (await response.get_json())["error"]["code"] == "server_error"
        assert response.headers["x-should-retry"] == "false"
        data = await post(bench, path, model=name, stream=True, **extra)
        frames = [frame for _, frame in events(data)[:-1]]
        if path == RESPONSES:
            assert [frame["type"] for frame in frames[-2:]] == ["error", "response.failed"]
            assert frames[-1]["response"]["error"]["code"] == "server_error"
            assert frames[-2]["error"]["message"] == "The engine stopped unexpectedly."
        else:
            assert list(frames[-1]) == ["error"]
            assert not any(
                choice["finish_reason"] for frame in frames[:-1] for choice in frame["choices"]
            )


async def test_stop_strings_cut_alike_on_all_endpoints(bench: Bench) -> None:
    full = (await post(bench, CHAT, model="plain/long", **USER))["choices"][0]["message"]["content"]
    stop = full[40:48]
    expected = full[: full.index(stop)]
    cut = {"model": "plain/long", "stop": stop}
    chat = await post(bench, CHAT, **cut, **USER)
    assert chat["choices"][0]["message"]["content"] == expected
    assert chat["choices"][0]["stop_reason"] == stop
    text = await post(bench, COMPLETIONS, **cut, prompt="x", max_tokens=1000, stream=True)
    assert fold_completions(text)[0]["text"] == expected
    response = await post(bench, RESPONSES, **cut, input="x")
    assert response["output"][0]["content"][0]["text"] == expected
    assert bench.service.fanout.running == 0


async def test_limits_end_by_length(bench: Bench) -> None:
    chat = await post(bench, CHAT, model="plain/long", max_tokens=3, **USER)
    assert chat["choices"][0]["finish_reason"] == "length"
    assert chat["usage"]["completion_tokens"] == 3
    response = await post(bench, RESPONSES, model="plain/long", max_output_tokens=3, input="x")
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"


async def test_empty_stream_options_bring_no_usage(bench: Bench) -> None:
    data = await post(bench, CHAT, model="plain/hello", stream=True, stream_options={}, **USER)
    assert not any("usage" in chunk for chunk in chunks(data))


async def test_models_are_listed_with_slashes_in_their_names(bench: Bench) -> None:
    listed = (await (await bench.client.get("/v1/models")).get_json())["data"]
    assert [entry["id"] for entry in listed] == NAMES
    for entry in listed:
        one = await bench.client.get(f"/v1/models/{entry['id']}")
        assert await one.get_json() == entry
        assert (await bench.client.head(f"/v1/models/{entry['id']}")).status_code == 200
