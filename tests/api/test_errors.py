"""Every error of every path is the OpenAI error object, with a request id."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from quart.testing.connections import WebsocketResponseError
from quart.testing.utils import sentinel

from antiphon.requests.json_body import parse_object
from api.conftest import Bench

CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}
HELLO: dict[str, Any] = {
    "model": "plain/hello",
    "messages": [{"role": "user", "content": "hi"}],
}


async def assert_error(
    response: Any, status: int, code: str, param: str | None = None
) -> dict[str, Any]:
    assert response.status_code == status
    assert response.mimetype == "application/json"
    assert response.headers["x-request-id"]
    body: dict[str, Any] = await response.get_json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    assert (body["error"]["code"], body["error"]["param"]) == (code, param)
    return body


@pytest.mark.wire("error:unknown_url", "P5")
@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/models/", "/v2"])
async def test_unknown_paths(bench: Bench, path: str) -> None:
    await assert_error(await bench.client.get(path), 404, "unknown_url")


@pytest.mark.wire("error:method_not_allowed", "P5")
@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", CHAT, "POST"),
        ("DELETE", "/v1/models", "GET, HEAD"),
        ("OPTIONS", CHAT, "POST"),
        ("PUT", "/v1/responses", "POST"),
        ("POST", "/health", "GET, HEAD"),
    ],
)
async def test_wrong_methods(bench: Bench, method: str, path: str, allow: str) -> None:
    response = await bench.client.open(path, method=method, json=sentinel)
    await assert_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow


@pytest.mark.parametrize(
    ("path", "method"),
    [("", "GET"), ("", "DELETE"), ("/cancel", "POST"), ("/input_items", "GET")],
)
async def test_nothing_is_stored(bench: Bench, path: str, method: str) -> None:
    response = await bench.client.open(f"/v1/responses/resp_1{path}", method=method, json=sentinel)
    await assert_error(response, 404, "response_not_found", "response_id")


async def test_media_types(bench: Bench) -> None:
    for headers in (
        {},
        {"content-type": "text/plain"},
        {**JSON, "content-encoding": "gzip"},
    ):
        response = await bench.client.post(CHAT, data=b"{}", headers=headers)
        await assert_error(response, 415, "unsupported_media_type")
    response = await bench.client.post(
        CHAT, data=b"{}", headers={"content-type": "application/json; charset=utf-8"}
    )
    await assert_error(response, 400, "missing_required_parameter", "model")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff\xfe", b'{"n": NaN}'])
@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/responses"])
async def test_bodies_that_are_no_json_object(bench: Bench, path: str, body: bytes) -> None:
    response = await bench.client.post(path, data=body, headers=JSON)
    await assert_error(response, 400, "invalid_json")


async def test_bodies_above_the_limit(bench: Bench) -> None:
    response = await bench.client.post(CHAT, data=b" " * (16 * 1024 * 1024 + 1), headers=JSON)
    await assert_error(response, 413, "request_too_large")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "extra"),
    [
        (CHAT, {"messages": HELLO["messages"]}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/responses", {"input": "hi"}),
    ],
)
async def test_unknown_model(bench: Bench, path: str, extra: dict[str, Any], stream: bool) -> None:
    response = await bench.client.post(path, json={"model": "nope", "stream": stream, **extra})
    body = await assert_error(response, 400, "model_not_found", "model")
    assert "`nope` does not exist" in body["error"]["message"]
    first = next(iter(bench.service.catalogue)).id
    assert f"`{first}`" in body["error"]["message"]


async def test_unknown_model_by_get_is_404(bench: Bench) -> None:
    await assert_error(await bench.client.get("/v1/models/nope"), 404, "model_not_found", "model")


@pytest.mark.wire("error:invalid_api_key", "S2", "P5")
@pytest.mark.parametrize(
    "header",
    [None, "Bearer", "Bearer ", "Bearer wrong", "Basic first-key", "first-key", "Bearer é"],
)
@pytest.mark.parametrize("path", ["/v1/models", CHAT, "/v1/nothing", "/tokenize"])
async def test_keys_are_asked_for(locked_bench: Bench, path: str, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    response = await locked_bench.client.get(path, headers=headers)
    await assert_error(response, 401, "invalid_api_key")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.wire("S2")
@pytest.mark.parametrize("header", ["Bearer first-key", "bearer second-key", "BEARER  first-key"])
async def test_any_key_opens(locked_bench: Bench, header: str) -> None:
    response = await locked_bench.client.get("/v1/models", headers={"authorization": header})
    assert response.status_code == 200


async def test_health_needs_no_key(locked_bench: Bench) -> None:
    response = await locked_bench.client.get("/health")
    assert (response.status_code, await response.get_json()) == (200, {"status": "ok"})


async def test_strict_requests_refuse_unknown_fields(strict_bench: Bench) -> None:
    response = await strict_bench.client.post(CHAT, json={**HELLO, "zork": 1})
    await assert_error(response, 400, "unknown_parameter", "zork")


async def test_ignored_fields_are_listed(bench: Bench) -> None:
    body = {**HELLO, "zork": 1, "store": True, "reasoning_effort": "low", "verbosity": "low"}
    response = await bench.client.post(CHAT, json=body)
    assert response.status_code == 200
    assert response.headers["antiphon-ignored-fields"] == "reasoning_effort, store, verbosity, zork"


async def test_a_bug_is_an_error_object_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(bench.service.catalogue, "require", fail)
    response = await bench.client.post(CHAT, json=HELLO)
    body = await assert_error(response, 500, "internal_error")
    assert "secret" not in str(body)
    assert "secret" in caplog.text


async def test_a_slow_template_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    model = bench.service.catalogue.require(HELLO["model"])
    monkeypatch.setattr(model.prompter, "chat", lambda *_, **__: released.wait())
    bench.service.prompt_timeout_s = 0.1
    response = await bench.client.post(CHAT, json=HELLO)
    released.set()
    await assert_error(response, 400, "invalid_value", "messages")


async def test_no_thread_for_a_template_in_time_is_no_fault_of_the_client(bench: Bench) -> None:
    bench.service.prompt_timeout_s = 0
    await assert_error(await bench.client.post(CHAT, json=HELLO), 503, "overloaded")


async def test_a_dead_engine_is_reported(bench: Bench) -> None:
    for model in bench.service.catalogue:
        model.info.healthy = False
    response = await bench.client.get("/health")
    assert (response.status_code, await response.get_json()) == (503, {"status": "engine_dead"})
    refused = await bench.client.post(CHAT, json=HELLO)
    await assert_error(refused, 503, "engine_unavailable")
    assert refused.headers["retry-after"] == "1"


async def test_an_engine_that_is_started_again_says_when_to_come_back(bench: Bench) -> None:
    for model in bench.service.catalogue:
        model.info.healthy, model.info.back_ns = False, time.monotonic_ns() + 3600 * 10**9
    refused = await bench.client.post(CHAT, json=HELLO)
    await assert_error(refused, 503, "engine_unavailable")
    assert 3500 < int(refused.headers["retry-after"]) <= 3600


@pytest.mark.parametrize("name", ["a\nb", "a\r\nx: y", "a\0", "\u4e2d", "a,b", "x" * 70_000])
async def test_odd_names_of_ignored_fields_fit_a_header(bench: Bench, name: str) -> None:
    response = await bench.client.post(CHAT, json={**HELLO, name: 1})
    assert response.status_code == 200
    header = response.headers["antiphon-ignored-fields"]
    assert header.isascii()
    assert header.isprintable()
    assert len(header) <= 64 * 9


async def test_many_ignored_fields_are_cut(bench: Bench) -> None:
    body = {**HELLO, **{f"field_{i:03}": i for i in range(50)}}
    header = (await bench.client.post(CHAT, json=body)).headers["antiphon-ignored-fields"]
    assert header.split(", ") == [f"field_{i:03}" for i in range(20)]


async def test_numbers_that_are_no_token_ids(bench: Bench) -> None:
    body = {**HELLO, "logit_bias": {"9" * 5000: 1}}
    param = f"logit_bias.{'9' * 188}…"  # as long as a param is
    await assert_error(await bench.client.post(CHAT, json=body), 400, "invalid_value", param)


async def test_arguments_that_are_no_json_are_history_like_any_other(bench: Bench) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[" * 100_000}}
    history = [{"role": "assistant", "tool_calls": [call]}, *HELLO["messages"]]
    response = await bench.client.post(CHAT, json={**HELLO, "messages": history})
    assert response.status_code == 200


async def test_more_min_tokens_than_can_come(bench: Bench) -> None:
    response = await bench.client.post(CHAT, json={**HELLO, "max_tokens": 4, "min_tokens": 5})
    await assert_error(response, 400, "integer_above_max_value", "min_tokens")


async def test_a_large_body_is_parsed_beside_the_loop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def watched(body: bytes) -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return parse_object(body)

    monkeypatch.setattr("antiphon.api.body.parse_object", watched)
    long = {"model": HELLO["model"], "messages": [{"role": "user", "content": "x" * 100_000}]}
    for body in (HELLO, long):
        assert (await bench.client.post(CHAT, json=body)).status_code == 200
    assert threads[0] == threading.main_thread().name
    assert threads[1] != threads[0]


async def test_routes_that_are_still_to_come(bench: Bench) -> None:
    await assert_error(
        await bench.client.post("/v1/responses/compact", json={}), 404, "unknown_url"
    )


@pytest.mark.wire("endpoint:GET /v1/responses (websocket)")
async def test_an_upgrade_to_a_websocket_is_refused_in_kind(bench: Bench) -> None:
    for path, status, code in (
        ("/v1/responses", 405, "method_not_allowed"),
        ("/nope", 404, "unknown_url"),
    ):
        with pytest.raises(WebsocketResponseError) as caught:
            async with bench.client.websocket(path) as connection:
                await connection.receive()
        await assert_error(caught.value.response, status, code)
