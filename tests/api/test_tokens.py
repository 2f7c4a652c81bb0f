"""Counting and tokenizing without generating."""

from __future__ import annotations

from typing import Any

import pytest

from api.conftest import Bench

BYTES = "plain/unicode"
OPAQUE = "plain/hello"


async def post(bench: Bench, path: str, status: int = 200, **body: object) -> Any:
    response = await bench.client.post(path, json=body)
    assert response.status_code == status
    return await response.get_json()


@pytest.mark.wire("endpoint:POST /v1/responses/input_tokens")
@pytest.mark.parametrize("model", [BYTES, OPAQUE])
async def test_the_count_is_that_of_the_same_create(bench: Bench, model: str) -> None:
    fields: dict[str, Any] = {
        "model": model,
        "input": [{"role": "user", "content": "Hi"}],
        "instructions": "Be",
    }
    counted = await post(bench, "/v1/responses/input_tokens", **fields)
    created = await post(bench, "/v1/responses", **fields)
    assert counted == {
        "object": "response.input_tokens",
        "input_tokens": created["usage"]["input_tokens"],
    }


async def test_counting_refuses_what_creating_refuses(bench: Bench) -> None:
    for fields, param, code in (
        ({"input": "Hi"}, "model", "missing_required_parameter"),
        ({"model": "nope", "input": "Hi"}, "model", "model_not_found"),
        ({"model": BYTES}, "input", "missing_required_parameter"),
        (
            {"model": BYTES, "input": "Hi", "temperature": 3},
            "temperature",
            "decimal_above_max_value",
        ),
    ):
        refusal = await post(bench, "/v1/responses/input_tokens", 400, **fields)
        assert (refusal["error"]["param"], refusal["error"]["code"]) == (param, code)


async def test_nothing_runs_when_tokens_are_counted(bench: Bench) -> None:
    await post(bench, "/v1/responses/input_tokens", model="plain/hold", input="Hi")
    assert bench.service.fanout.running == 0


@pytest.mark.wire("endpoint:POST /tokenize", "endpoint:POST /detokenize")
async def test_text_to_ids_and_back(bench: Bench) -> None:
    text = "né 🎵"
    encoded = await post(bench, "/tokenize", model=BYTES, prompt=text, return_token_strs=True)
    assert encoded["tokens"] == list(text.encode())
    assert encoded["count"] == len(encoded["tokens"]) == len(encoded["token_strs"])
    assert encoded["token_strs"][0] == "n"
    assert encoded["max_model_len"] > 0
    decoded = await post(bench, "/detokenize", model=BYTES, tokens=encoded["tokens"])
    assert decoded == {"prompt": text}


async def test_token_strings_are_null_unless_asked_for(bench: Bench) -> None:
    encoded = await post(bench, "/tokenize", model=BYTES, prompt="")
    assert encoded == {
        "count": 0,
        "max_model_len": encoded["max_model_len"],
        "tokens": [],
        "token_strs": None,
    }


async def test_without_a_model_it_is_the_first(bench: Bench) -> None:
    first = next(iter(bench.service.catalogue)).id
    named = await bench.client.post("/tokenize", json={"model": first, "prompt": "Hi"})
    unnamed = await bench.client.post("/tokenize", json={"prompt": "Hi"})
    assert await unnamed.get_json() == await named.get_json()


async def test_what_has_no_vocabulary_is_not_tokenized(bench: Bench) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    for path, fields, param, code in (
        ("/tokenize", {"prompt": "Hi"}, "prompt", "unsupported_parameter"),
        ("/tokenize", {"messages": messages}, "messages", "unsupported_parameter"),
        ("/detokenize", {"tokens": [1]}, "tokens", "unsupported_parameter"),
        ("/detokenize", {"tokens": []}, "tokens", "unsupported_parameter"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]", "integer_below_min_value"),
        ("/detokenize", {"tokens": ["1"]}, "tokens[0]", "invalid_type"),
        ("/detokenize", {}, "tokens", "missing_required_parameter"),
        ("/tokenize", {}, "prompt", "missing_required_parameter"),
        ("/tokenize", {"prompt": "Hi", "messages": messages}, "messages", "conflicting_parameters"),
    ):
        refusal = await post(bench, path, 400, model=OPAQUE, **fields)
        assert (refusal["error"]["param"], refusal["error"]["code"]) == (param, code), (
            path,
            fields,
        )


async def test_an_id_that_does_not_exist_has_no_text(bench: Bench) -> None:
    refusal = await post(bench, "/detokenize", 400, model=BYTES, tokens=[65, 256])
    assert (refusal["error"]["param"], refusal["error"]["code"]) == ("tokens[1]", "invalid_value")


async def test_ignored_fields_are_named_here_too(bench: Bench) -> None:
    for path, fields in (
        ("/tokenize", {"prompt": "Hi"}),
        ("/detokenize", {"tokens": [65]}),
        ("/v1/responses/input_tokens", {"input": "Hi"}),
    ):
        response = await bench.client.post(path, json={"model": BYTES, **fields, "zork": 1})
        assert response.headers["antiphon-ignored-fields"] == "zork"
