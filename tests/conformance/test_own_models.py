"""A model of the user's own, from a Hugging Face directory to the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from conformance.conftest import serving
from engines.torch.tiny_models import Shape, hf_config, random_weights, write_hf
from prompting.vocabularies import CHATML, smollm_split, train_byte_level, write_folder

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server of a random model in two shards, with its own vocabulary and template."""
    folder = tmp_path_factory.mktemp("models") / "my-model"
    tokenizer = train_byte_level(smollm_split())
    shape = Shape(vocab=tokenizer.get_vocab_size(), context=64)
    write_hf(folder, hf_config(shape), random_weights(shape), shards=2)
    write_folder(folder, tokenizer, chat_template=CHATML)
    with serving(str(folder)) as server, httpx.Client(base_url=server.url, timeout=30) as made:
        yield made


def ask(client: httpx.Client, path: str, **body: Any) -> httpx.Response:
    return client.post(path, json={"model": "my-model", "temperature": 0, **body})


def test_the_directory_names_the_model(client: httpx.Client) -> None:
    (entry,) = client.get("/v1/models").json()["data"]
    assert (entry["id"], entry["max_model_len"]) == ("my-model", 64)


def test_the_context_ends_an_answer_by_length(client: httpx.Client) -> None:
    body = ask(client, "/v1/chat/completions", ignore_eos=True, **CHAT).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == 64


def test_prompts_as_token_ids(client: httpx.Client) -> None:
    extra = {"max_tokens": 4, "ignore_eos": True}
    one = ask(client, "/v1/completions", prompt=[5, 6, 7], **extra).json()
    assert one["usage"]["prompt_tokens"] == 3
    two = ask(client, "/v1/completions", prompt=[[5, 6, 7], [8]], n=2, **extra).json()
    assert [choice["text"] for choice in two["choices"][:2]] == [one["choices"][0]["text"]] * 2
    assert two["usage"] == {
        **one["usage"],
        "prompt_tokens": 4,
        "completion_tokens": 16,
        "total_tokens": 20,
    }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": [5, 100_000]}, "prompt[1]"),
        ({"prompt": "x", "stop_token_ids": [100_000]}, "stop_token_ids"),
        ({"prompt": "x", "logit_bias": {"100000": 1}}, "logit_bias"),
        ({"prompt": "x", "allowed_token_ids": [100_000]}, "allowed_token_ids"),
    ],
)
def test_ids_outside_the_vocabulary(
    client: httpx.Client, fields: dict[str, Any], param: str
) -> None:
    response = ask(client, "/v1/completions", **fields)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


@pytest.mark.wire("param:completions.allowed_token_ids", "param:completions.stop")
def test_what_a_request_may_forbid_and_allow(client: httpx.Client) -> None:
    extra = {"prompt": "x", "max_tokens": 3, "ignore_eos": True, "logprobs": 0}
    allowed = ask(client, "/v1/completions", allowed_token_ids=[9], **extra).json()
    assert len(set(allowed["choices"][0]["logprobs"]["tokens"])) == 1
    drawn = ask(client, "/v1/completions", **extra).json()["choices"][0]["logprobs"]["tokens"]
    stopped = ask(
        client, "/v1/completions", **{**extra, "stop": drawn[1], "max_tokens": 30}
    ).json()["choices"][0]
    assert stopped["stop_reason"] == drawn[1]


def test_tools_need_a_model_that_takes_them(client: httpx.Client) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    response = ask(client, "/v1/chat/completions", tools=tools, **CHAT)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "tools"


def test_the_tenth_stream_is_as_good_as_the_first(client: httpx.Client) -> None:
    bodies = set()
    for _ in range(10):
        response = ask(client, "/v1/chat/completions", stream=True, max_tokens=8, **CHAT)
        assert response.text.endswith("data: [DONE]\n\n")
        bodies.add("".join(part.split('"delta":')[1] for part in response.text.split("\n\n")[1:-3]))
    assert len(bodies) == 1


def test_a_prompt_of_megabytes_is_refused_without_being_tokenised(client: httpx.Client) -> None:
    for path, extra, param in (
        ("/v1/completions", {"prompt": "x" * 10_000_000}, "prompt"),
        ("/v1/responses", {"input": "x" * 10_000_000}, "input"),
    ):
        error = ask(client, path, **extra).json()["error"]
        assert (error["code"], error["param"]) == ("context_length_exceeded", param)
