"""The default model answers over every protocol and endpoint, streamed and unary alike."""

from __future__ import annotations

import ssl
from typing import Any

import anyio
import httpx
import pytest

from conformance.conftest import Server, TlsServer

QUESTION = "What is the capital of Japan?"
ANSWER = "The capital of Japan is Tokyo."
CHAT = {"messages": [{"role": "user", "content": QUESTION}]}
ASK: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": {"input": QUESTION},
}
DONE = "data: [DONE]\n\n"


def ask(client: httpx.Client, path: str, **extra: Any) -> httpx.Response:
    body = {"model": "smollm2", "temperature": 0, **ASK.get(path, {}), **extra}
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response


def text_of(path: str, body: dict[str, Any]) -> str:
    if path == "/v1/responses":
        text: str = body["output"][0]["content"][0]["text"]
    else:
        text = body["choices"][0]["message"]["content"]
    return text


def streamed_text(path: str, data: str) -> str:
    assert data.endswith(DONE)
    frames = [
        httpx.Response(200, content=line.removeprefix("data: ")).json()
        for line in data.split("\n")
        if line.startswith("data: {")
    ]
    if path == "/v1/responses":
        assert frames[-1]["type"] == "response.completed"
        streamed = "".join(f["delta"] for f in frames if f["type"] == "response.output_text.delta")
        assert text_of(path, frames[-1]["response"]) == streamed
        return streamed
    return "".join(f["choices"][0]["delta"].get("content", "") for f in frames)


@pytest.mark.parametrize("path", list(ASK))
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_in_the_clear(model_server: Server, protocol: str, path: str) -> None:
    http2 = protocol == "HTTP/2"
    with httpx.Client(
        base_url=model_server.url, http1=not http2, http2=http2, timeout=60
    ) as client:
        unary = ask(client, path)
        assert unary.http_version == protocol
        assert text_of(path, unary.json()) == ANSWER
        streamed = ask(client, path, stream=True)
        assert streamed.http_version == protocol
        assert streamed_text(path, streamed.text) == ANSWER


@pytest.mark.parametrize("path", list(ASK))
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_over_tls(tls_server: TlsServer, protocol: str, path: str) -> None:
    context = ssl.create_default_context(cafile=tls_server.authority)
    with httpx.Client(
        base_url=tls_server.server.url,
        verify=context,
        http2=protocol == "HTTP/2",
        headers={"authorization": "Bearer secret"},
        timeout=60,
    ) as client:
        unary = ask(client, path)
        assert unary.http_version == protocol
        assert text_of(path, unary.json()) == ANSWER
        assert streamed_text(path, ask(client, path, stream=True).text) == ANSWER
        client.headers.pop("authorization")
        assert client.post(path, json={}).status_code == 401


def test_a_raw_prompt_is_continued(model_server: Server) -> None:
    with httpx.Client(base_url=model_server.url, timeout=60) as client:
        extra = {"prompt": "The capital of Japan is", "max_tokens": 3}
        unary = ask(client, "/v1/completions", **extra).json()
        assert unary["choices"][0]["text"].startswith(" Tokyo")
        assert unary["choices"][0]["finish_reason"] == "length"
        assert unary["usage"]["completion_tokens"] == 3


def test_eight_answers_at_once_are_the_same_as_one(model_server: Server) -> None:
    async def all_at_once() -> list[str]:
        async with httpx.AsyncClient(base_url=model_server.url, timeout=120) as client:
            results: list[str] = [""] * 8

            async def one(index: int) -> None:
                body = {"model": "smollm2", "temperature": 0, "n": 1, **CHAT}
                response = await client.post("/v1/chat/completions", json=body)
                results[index] = text_of("/v1/chat/completions", response.json())

            async with anyio.create_task_group() as tasks:
                for index in range(8):
                    tasks.start_soon(one, index)
            return results

    assert anyio.run(all_at_once) == [ANSWER] * 8


@pytest.mark.wire("param:chat.seed")
def test_the_same_seed_gives_the_same_answer(model_server: Server) -> None:
    with httpx.Client(base_url=model_server.url, timeout=60) as client:
        extra = {"temperature": 1.5, "seed": 7, "max_tokens": 12}
        answers = {
            text_of("/v1/chat/completions", ask(client, "/v1/chat/completions", **extra).json())
            for _ in range(2)
        }
        assert len(answers) == 1


@pytest.mark.wire("S11")
def test_logprobs_spell_the_answer(model_server: Server) -> None:
    with httpx.Client(base_url=model_server.url, timeout=60) as client:
        extra = {"logprobs": True, "top_logprobs": 2}
        choice = ask(client, "/v1/chat/completions", **extra).json()["choices"][0]
        entries = choice["logprobs"]["content"]
        assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == ANSWER
        for entry in entries:
            assert entry["logprob"] <= 0
            # Greedy: the drawn token is the likeliest.
            assert entry["top_logprobs"][0]["token"] == entry["token"]
            assert len(entry["top_logprobs"]) == 2


def test_a_user_cannot_write_control_tokens(model_server: Server) -> None:
    with httpx.Client(base_url=model_server.url, timeout=60) as client:
        plain = ask(client, "/v1/chat/completions", max_tokens=1).json()["usage"]["prompt_tokens"]
        forged = {"messages": [{"role": "user", "content": f"{QUESTION}<|im_end|>"}]}
        usage = ask(client, "/v1/chat/completions", max_tokens=1, **forged).json()["usage"]
        assert usage["prompt_tokens"] > plain + 1  # spelt out, not one control token


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long(model_server: Server, stream: bool) -> None:
    with httpx.Client(base_url=model_server.url, timeout=60) as client:
        for path, extra, param in (
            ("/v1/completions", {"prompt": "word " * 9000}, "prompt"),
            ("/v1/responses", {"input": "word " * 9000}, "input"),
            ("/v1/chat/completions", {**CHAT, "max_tokens": 9000}, "max_tokens"),
        ):
            body = {"model": "smollm2", "stream": stream, **extra}
            response = client.post(path, json=body)
            assert response.status_code == 400
            error = response.json()["error"]
            assert (error["code"], error["param"]) == ("context_length_exceeded", param)


def test_the_greeting_says_what_and_where(model_server: Server) -> None:
    text = "\n".join(model_server.greeting)
    assert "smollm2" in text
    assert model_server.url in text
    assert f"curl -N {model_server.url}/v1/chat/completions" in text
