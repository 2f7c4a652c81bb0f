"""What operators ask: alive, ready, healthy, which version, how much. And who may ask."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from antiphon import __version__
from antiphon.engines.port import EngineError, Finish
from api.hosted import (
    BODIES,
    CHAT,
    COMPLETIONS,
    PROMPT_TOKENS,
    PROTOCOLS,
    RESPONSES,
    Hosted,
    hosted,
)
from api.test_error_table import error_of
from transport.hosting import GUARD_S, H1Client

OPEN = ("/health", "/live", "/ready", "/metrics", "/version")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scrape(client: httpx.AsyncClient) -> Samples:
    """Every sample of /metrics, by name and sorted labels."""
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((f"antiphon_{name}", tuple(sorted(labels.items()))), 0.0)


async def ask(host: Hosted, client: httpx.AsyncClient, path: str, **extra: Any) -> httpx.Response:
    """An answer of three tokens in two steps."""
    before = len(host.engine.requests)
    answers: list[httpx.Response] = []

    async def post() -> None:
        answers.append(await client.post(path, json={**BODIES[path], **extra}))

    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post)
            await host.engine.until(lambda: len(host.engine.requests) > before)
            for request in host.engine.requests[before:]:
                host.engine.say(request.key, b"ab")
                host.engine.rows(
                    lambda frame, key=request.key: frame.row(key, b"c", finish=Finish.STOP)  # type: ignore[misc]  # bound default
                )
    return answers[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_sound_server(protocol: str) -> None:
    async with hosted() as host, host.client(protocol) as client:
        for path in ("/live", "/ready", "/health"):
            response = await client.get(path)
            assert (response.status_code, response.json()) == (200, {"status": "ok"})
            assert response.headers["x-request-id"]
        assert (await client.get("/version")).json() == {"version": __version__}


async def test_a_dead_engine_is_alive_but_not_ready() -> None:
    async with hosted() as host, host.client() as client:
        host.engine.die()
        with anyio.fail_after(GUARD_S):
            while not host.service.fanout.engine_gone:
                await anyio.lowlevel.checkpoint()
        assert (await client.get("/live")).status_code == 200
        for path in ("/ready", "/health"):
            response = await client.get(path)
            assert (response.status_code, response.json()) == (503, {"status": "engine_dead"})


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("path", [*OPEN, "/v1/models", "/v1/models/m", "/v1/responses/resp_1"])
async def test_head_is_answered_wherever_get_is(path: str, protocol: str) -> None:
    headers = {"x-request-id": "r1"}
    async with hosted() as host, host.client(protocol) as client:
        head = await client.head(path, headers=headers)
        get = await client.get(path, headers=headers)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers["x-request-id"] == "r1"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES, "/v1/models"])
async def test_answers_tell_how_long_they_took(path: str) -> None:
    async with hosted() as host, host.client() as client:
        response = await (ask(host, client, path) if path in BODIES else client.get(path))
        assert response.status_code == 200
        assert response.headers["openai-processing-ms"].isdigit()
        refused = await client.post(CHAT, json={})
        assert "openai-processing-ms" not in refused.headers


@pytest.mark.parametrize("path", OPEN)
async def test_probes_need_no_key(path: str) -> None:
    async with hosted(api_key=("key",)) as host, host.client() as client:
        assert (await client.get(path)).status_code == 200
        assert (await client.head(path)).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/nothing", "/%761/models", "/v1/models", "/tokenize", "/detokenize", CHAT],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_everything_else_needs_one(path: str, protocol: str) -> None:
    async with hosted(api_key=("one", "two")) as host, host.client(protocol) as client:
        for method in ("GET", "POST", "HEAD", "PATCH"):
            refused = await client.request(method, path)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            if method != "HEAD":
                assert error_of(refused) == {
                    "message": "Missing or invalid API key. Send it as "
                    "'Authorization: Bearer <key>'.",
                    "type": "authentication_error",
                    "param": None,
                    "code": "invalid_api_key",
                }
        for scheme in ("Bearer", "bearer", "BEARER"):
            for key in ("one", "two"):
                given = {"authorization": f"{scheme} {key}"}
                assert (await client.get(path, headers=given)).status_code != 401
        for wrong in ("Bearer on", "Bearer onee", "Bearer one two", "Basic one", "one", "Bearer"):
            refused = await client.get(path, headers={"authorization": wrong})
            assert refused.status_code == 401
        options = await client.options(path)
        assert options.status_code in {404, 405}


@pytest.mark.parametrize("path", ["/health/", "/Health", "/health%2f", "/metrics/x", "/healthz"])
async def test_exemptions_are_exact_and_what_is_no_route_stays_none(path: str) -> None:
    async with hosted(api_key=("key",)) as host, host.client() as client:
        url = httpx.URL(host.listener.url).copy_with(raw_path=path.encode())
        assert error_of(await client.get(url))["code"] == "unknown_url"


@pytest.mark.parametrize(
    "target",
    ["//v1/models", "/v1//models", "/v1%2fmodels", "http://x//v1/models", "/%76%31/models"],
)
async def test_no_spelling_of_a_path_gets_around_the_key(target: str) -> None:
    async with hosted(api_key=("key",)) as host, H1Client.open(host.listener) as client:
        await client.send(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert await client.until(b"\r\n") == b"HTTP/1.1 401 Unauthorized\r\n"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ([], 401, "invalid_api_key"),
        (["authorization: Bearer wrong"], 401, "invalid_api_key"),
        (["authorization: bearer key"], 405, "method_not_allowed"),
    ],
)
async def test_the_handshake_of_a_websocket_needs_a_key(
    headers: list[str], status: int, code: str
) -> None:
    lines = [
        f"GET {RESPONSES} HTTP/1.1", "host: x", "connection: upgrade", "upgrade: websocket",
        "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        "x-request-id: r1", *headers, "", "",
    ]  # fmt: skip
    async with hosted(api_key=("key",)) as host, H1Client.open(host.listener) as client:
        await client.send("\r\n".join(lines).encode())
        head = await client.until(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"x-request-id: r1\r\n" in head
        assert f'"code":"{code}"'.encode() in await client.until(b"}}")


async def test_what_is_counted() -> None:
    async with hosted() as host, host.client() as client:
        await ask(host, client, CHAT, n=2)
        await ask(host, client, COMPLETIONS, prompt=["a", "b"], n=2)
        await ask(host, client, RESPONSES, zork=1, borg=2)
        await client.post(CHAT, json={})
        await client.get("/no/such/path")
        await client.get("/another")
        samples = await scrape(client)
        again = await scrape(client)
    requests = "requests_total"
    assert of(samples, requests, endpoint=CHAT, status="200") == 1
    assert of(samples, requests, endpoint=CHAT, status="400") == 1
    assert of(samples, requests, endpoint="unknown", status="404") == 2
    assert of(again, requests, endpoint="/metrics", status="200") == 1
    # A prompt counts once for all of its choices.
    assert of(samples, "prompt_tokens_total") == PROMPT_TOKENS * (1 + 2 + 1)
    assert of(samples, "generation_tokens_total") == 3 * (2 + 4 + 1)
    assert of(samples, "ignored_fields_total", endpoint=RESPONSES) == 2
    assert of(samples, "time_to_first_token_seconds_count") == 3
    assert of(samples, "request_duration_seconds_count") == 3
    durations = [
        of(samples, f"{name}_seconds_sum") for name in ("time_to_first_token", "request_duration")
    ]
    assert 0 < durations[0] <= durations[1]
    assert of(samples, "requests_running") == of(samples, "requests_waiting") == 0
    written = {value for _, labels in samples for _, value in labels}
    assert not written & {"zork", "borg", "/no/such/path", "/another"}


async def test_every_ignored_field_counts_and_those_of_a_refused_call_do_not() -> None:
    names = {f"unknown_{number}": 1 for number in range(30)}
    async with hosted() as host, host.client() as client:
        answered = await ask(host, client, CHAT, **names)
        assert answered.headers["antiphon-ignored-fields"].count("unknown_") == 20
        host.engine.refusal = EngineError(code="engine_failed", message="x")
        refused = await client.post(CHAT, json={**BODIES[CHAT], **names})
        assert refused.status_code == 500
        assert "antiphon-ignored-fields" not in refused.headers
        assert of(await scrape(client), "ignored_fields_total", endpoint=CHAT) == 30


async def test_the_load_is_shown_while_it_lasts() -> None:
    async with hosted() as host, host.client() as client:
        body = {**BODIES[CHAT], "n": 3, "stream": True}
        async with client.stream("POST", CHAT, json=body):
            host.engine.running = 2
            host.engine.say(host.engine.requests[0].key, b"a")
            with anyio.fail_after(GUARD_S):
                while of(await scrape(client), "requests_running") != 2:
                    pass
            samples = await scrape(client)
            assert of(samples, "requests_waiting") == 1
        with anyio.fail_after(GUARD_S):
            await host.engine.until(lambda: len(host.engine.aborted) == 3)
        samples = await scrape(client)
        assert of(samples, "requests_running") == of(samples, "requests_waiting") == 0


async def test_a_refused_call_is_no_failed_response() -> None:
    async with hosted() as host, host.client() as client:
        host.engine.refusal = EngineError(code="engine_failed", message="x")
        assert (await client.post(CHAT, json=BODIES[CHAT])).status_code == 500
        samples = await scrape(client)
    assert of(samples, "requests_total", endpoint=CHAT, status="500") == 1
    assert not any(name == "antiphon_failed_responses_total" for name, _ in samples)
    assert of(samples, "prompt_tokens_total") == 0


async def test_two_services_count_for_themselves() -> None:
    async with hosted() as one, hosted() as two, one.client() as first, two.client() as second:
        await ask(one, first, CHAT)
        assert of(await scrape(first), "generation_tokens_total") == 3
        assert of(await scrape(second), "generation_tokens_total") == 0
