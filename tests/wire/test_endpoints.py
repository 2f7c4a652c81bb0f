"""Every path: what it answers, and what it answers where it is still to come."""

from __future__ import annotations

from typing import Any

import pytest
from quart.testing.utils import sentinel

from antiphon import __version__
from wire.told import CONTEXT, Told

TOOL = {"type": "function", "function": {"name": "add"}}
USER = {"role": "user", "content": "hi"}


async def get(app: Told, path: str, status: int = 200) -> Any:
    response = await app.client.get(path)
    assert response.status_code == status
    return await response.get_json()


async def post(app: Told, path: str, status: int = 200, **body: Any) -> Any:
    response = await app.client.post(path, json=body)
    assert response.status_code == status, await response.get_data(as_text=True)
    return await response.get_json()


@pytest.mark.wire("endpoint:GET /v1/models", "endpoint:GET /v1/models/{id}")
async def test_models(app: Told) -> None:
    model = {
        "id": "m",
        "object": "model",
        "created": 1,
        "owned_by": "antiphon",
        "max_model_len": CONTEXT,
    }
    assert await get(app, "/v1/models") == {"object": "list", "data": [model]}
    assert await get(app, "/v1/models/m") == model
    body = await get(app, "/v1/models/n/o", 404)
    assert (body["error"]["param"], body["error"]["code"]) == ("model", "model_not_found")


@pytest.mark.wire("endpoint:POST /v1/completions", "endpoint:POST /v1/chat/completions", "S5")
@pytest.mark.wire("endpoint:POST /v1/responses")
async def test_the_keys_of_bodies(app: Told) -> None:
    chat = await app.post("chat")
    assert list(chat) == ["id", "object", "created", "model", "choices", "usage"]
    assert list(chat["choices"][0]) == [
        "index",
        "message",
        "logprobs",
        "finish_reason",
        "stop_reason",
    ]
    completion = await app.post("completions")
    assert list(completion) == list(chat)
    assert list(completion["choices"][0]) == [
        "index",
        "text",
        "logprobs",
        "finish_reason",
        "stop_reason",
    ]
    response = await app.post("responses")
    assert len(response) == 33
    assert app.headers["openai-processing-ms"].isdigit()
    assert app.headers["x-request-id"]


@pytest.mark.wire("endpoint:POST /v1/responses/input_tokens")
async def test_the_count_of_what_a_template_writes(app: Told) -> None:
    fields: dict[str, Any] = {
        "input": [USER],
        "instructions": "be",
        "tools": [{"type": "function", "name": "add"}],
        "reasoning": {"effort": "low"},
    }
    counted = await post(app, "/v1/responses/input_tokens", model="m", **fields)
    created = await app.post("responses", **fields)
    assert counted["input_tokens"] == created["usage"]["input_tokens"]
    assert counted["input_tokens"] == len(app.engine.requests[0].prompt)


@pytest.mark.wire(
    "endpoint:POST /tokenize",
    "param:tokenize.model",
    "param:tokenize.prompt",
    "param:tokenize.add_special_tokens",
    "param:tokenize.return_token_strs",
    "endpoint:POST /detokenize",
    "param:detokenize.model",
    "param:detokenize.tokens",
)
async def test_a_text_in_tokens_and_back(app: Told) -> None:
    body = await post(app, "/tokenize", model="m", prompt="hi é", add_special_tokens=False)
    assert list(body) == ["count", "max_model_len", "tokens", "token_strs"]
    assert body["count"] == len(body["tokens"])
    assert (body["max_model_len"], body["token_strs"]) == (CONTEXT, None)
    assert await post(app, "/detokenize", tokens=body["tokens"]) == {"prompt": "hi é"}
    assert await post(app, "/detokenize", tokens=body["tokens"], model="m") == {"prompt": "hi é"}
    marked = await post(app, "/tokenize", prompt="hi é", return_token_strs=True)
    assert marked["tokens"][1:] == body["tokens"]
    assert len(marked["token_strs"]) == marked["count"]
    asked = await app.asked("completions", prompt="hi é")
    assert asked.prompt.tolist() == marked["tokens"]
    for path, fields in (("/tokenize", {"prompt": "x"}), ("/detokenize", {"tokens": [1]})):
        refusal = await post(app, path, 400, model="nope", **fields)
        assert refusal["error"]["code"] == "model_not_found"


CHAT_FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("messages", {}),
    ("tools", {"tools": [TOOL]}),
    ("add_generation_prompt", {"add_generation_prompt": False}),
    ("continue_final_message", {"continue_final_message": True}),
    ("documents", {"documents": [{"title": "T"}]}),
    ("chat_template_kwargs", {"chat_template_kwargs": {"colour": "red"}}),
    ("add_special_tokens", {"add_special_tokens": True}),
]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(fields, marks=pytest.mark.wire(f"param:tokenize.{name}"), id=name)
        for name, fields in CHAT_FIELDS
    ],
)
async def test_a_chat_in_tokens(app: Told, fields: dict[str, Any]) -> None:
    """They are those of the prompt of the same chat, and not those of a chat without the field."""
    messages = [USER, {"role": "assistant", "content": "Once"}]
    body = await post(app, "/tokenize", model="m", messages=messages, **fields)
    asked = await app.asked("chat", messages=messages, **fields)
    assert body["tokens"] == asked.prompt.tolist()
    if fields:
        plain = await post(app, "/tokenize", model="m", messages=messages)
        assert plain["tokens"] != body["tokens"]


@pytest.mark.wire("param:tokenize.chat_template", "param:tokenize.mm_processor_kwargs")
@pytest.mark.parametrize("name", ["chat_template", "mm_processor_kwargs"])
async def test_what_tokenize_does_not_offer(app: Told, name: str) -> None:
    body = await post(app, "/tokenize", 400, messages=[USER], **{name: "x"})
    assert (body["error"]["param"], body["error"]["code"]) == (name, "unsupported_parameter")


@pytest.mark.wire("endpoint:GET /health", "endpoint:GET /live", "endpoint:GET /ready")
async def test_alive_and_ready(app: Told) -> None:
    for path in ("/health", "/live", "/ready"):
        assert await get(app, path) == {"status": "ok"}
    app.engine.info.healthy = False
    try:
        assert await get(app, "/live") == {"status": "ok"}
        for path in ("/health", "/ready"):
            assert (await get(app, path, 503))["status"] == "engine_dead"
    finally:
        app.engine.info.healthy = True


@pytest.mark.wire("endpoint:GET /version")
async def test_the_version(app: Told) -> None:
    assert await get(app, "/version") == {"version": __version__}


@pytest.mark.wire("endpoint:GET /metrics", "P19")
async def test_metrics(app: Told) -> None:
    """What one answer adds, one that fails and one with a field that has no effect."""

    async def values() -> dict[str, float]:
        response = await app.client.get("/metrics")
        assert response.headers["content-type"].startswith("text/plain")
        lines = str(await response.get_data(as_text=True)).splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in pairs}

    before = await values()
    await app.post("chat", zork=1)
    await app.post("responses", stream=True, fails=True)
    after = await values()
    assert (after["antiphon_requests_running"], after["antiphon_requests_waiting"]) == (0, 0)
    for name, more in (
        ('antiphon_failed_responses_total{code="server_error"}', 1),
        ('antiphon_ignored_fields_total{endpoint="/v1/chat/completions"}', 1),
        ('antiphon_requests_total{endpoint="/v1/chat/completions",status="200"}', 1),
        ("antiphon_generation_tokens_total", 2 * len(app.engine.says)),
    ):
        assert after[name] - before.get(name, 0) == more


@pytest.mark.wire(
    "endpoint:GET /v1/responses/{id}",
    "endpoint:DELETE /v1/responses/{id}",
    "endpoint:POST /v1/responses/{id}/cancel",
    "endpoint:GET /v1/responses/{id}/input_items",
    "S14",
    "error:response_not_found",
)
@pytest.mark.parametrize(
    ("method", "rest"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")]
)
async def test_what_needs_a_store(app: Told, method: str, rest: str) -> None:
    response = await app.client.open(f"/v1/responses/resp_1{rest}", method=method, json=sentinel)
    assert response.status_code == 404
    error = (await response.get_json())["error"]
    assert (error["param"], error["code"]) == ("response_id", "response_not_found")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param(method, path, status, code, marks=pytest.mark.wire(f"endpoint:{row}"), id=path)
        for row, method, path, status, code in [
            ("POST /v1/responses/compact", "POST", "/v1/responses/compact", 404, "unknown_url"),
            ("/v1/conversations", "POST", "/v1/conversations", 404, "unknown_url"),
            ("/v1/conversations", "GET", "/v1/conversations/conv_1/items", 404, "unknown_url"),
            ("POST /v1/messages", "POST", "/v1/messages", 404, "unknown_url"),
            (
                "GET /v1/chat/completions", "GET", "/v1/chat/completions", 405,
                "method_not_allowed",
            ),
        ]
    ],
)  # fmt: skip
async def test_what_is_still_to_come(
    app: Told, method: str, path: str, status: int, code: str
) -> None:
    response = await app.client.open(path, method=method, json=sentinel)
    assert response.status_code == status
    assert (await response.get_json())["error"]["code"] == code
