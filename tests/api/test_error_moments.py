"""The rows of the table of errors that need more than one request: bodies that come slowly or grow,
headers that cannot be read, a limit of time, a server that ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from antiphon.api.rate_limit import TokenBuckets
from antiphon.transport.limits import Limits
from api.hosted import BODIES, CHAT, COMPLETIONS, JSON, PROTOCOLS, RESPONSES, hosted
from api.test_error_table import RETRY, error_of
from transport.hosting import H1Client, H2Client

HEAD_END = b"\r\n\r\n"


def head(*headers: str) -> bytes:
    lines = [f"POST {CHAT} HTTP/1.1", "host: x", "content-type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


def read(answer: bytes) -> httpx.Response:
    """An HTTP/1.1 answer that its connection ended, or that is whole."""
    start, _, body = answer.partition(HEAD_END)
    status, *lines = start.decode().split("\r\n")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    return httpx.Response(int(status.split()[1]), headers=headers, content=body)  # type: ignore[arg-type]  # pairs


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["request_timeout"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_does_not_come(protocol: str, code: str) -> None:
    async with hosted(limits=Limits(body_first_byte=0.01, body_rate_window=0.01)) as host:
        if protocol == "HTTP/1.1":
            async with H1Client.open(host.listener) as client:
                await client.send(head("content-length: 9") + b"{")
                response = read(await client.until(b"}}"))
            assert error_of(response)["code"] == code
            assert response.status_code == 408
        else:
            async with H2Client.open(host.listener) as client_2:
                stream = client_2.queue(CHAT, "POST", end=False, headers=JSON.items())
                await client_2.flush()
                await client_2.until_reset(stream)
                assert client_2.status(stream) == "408"
                assert json.loads(client_2.body(stream))["error"]["code"] == code


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["request_too_large"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_grows_past_its_limit(protocol: str, code: str) -> None:
    async def grow() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 50

    async with hosted(max_body=149) as host, host.client(protocol) as client:
        response = await client.post(CHAT, content=grow(), headers=JSON)
        assert (response.status_code, error_of(response)["code"]) == (413, code)
    async with hosted(max_body=150) as host, host.client(protocol) as client:
        response = await client.post(CHAT, content=grow(), headers=JSON)
        assert error_of(response)["code"] == "invalid_json"


@pytest.mark.parametrize("code", ["request_too_large"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_body_that_is_announced_as_too_large_is_not_waited_for(
    protocol: str, code: str
) -> None:
    async with hosted(max_body=100) as host:
        if protocol == "HTTP/1.1":
            async with H1Client.open(host.listener) as client:
                await client.send(head("content-length: 101"))
                response = read(await client.until(b"}}"))
            assert (response.status_code, error_of(response)["code"]) == (413, code)
        else:
            async with H2Client.open(host.listener) as client_2:
                headers = [*JSON.items(), ("content-length", "101")]
                stream = client_2.queue(CHAT, "POST", end=False, headers=headers)
                await client_2.flush()
                await client_2.until_ended(stream)
                assert client_2.status(stream) == "413"
                assert json.loads(client_2.body(stream))["error"]["code"] == code


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["headers_too_large"])
@pytest.mark.parametrize("size", [40_000, 60_000, 200_000])
async def test_a_header_block_that_is_too_large_for_http_1(size: int, code: str) -> None:
    """In one read or in many, whether the host can read it or not."""
    async with hosted() as host, H1Client.open(host.listener) as client:
        long = "x-long: " + "x" * size
        await client.send(b"GET /health HTTP/1.1\r\nhost: x\r\n" + long.encode() + HEAD_END)
        response = read(await client.until(b"}}"))
        assert (response.status_code, error_of(response)["code"]) == (431, code)


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["headers_too_large"])
async def test_a_header_block_that_is_too_large_for_http_2_harms_no_neighbour(code: str) -> None:
    async with hosted() as host, H2Client.open(host.listener) as client:
        streams = [
            client.queue("/live", headers=[(f"x-{part}", "y" * size) for part in range(9)])
            for size in (100, 20_000, 100)
        ]
        await client.flush()
        await client.read_until(lambda: client.ended(*streams))
        assert [client.status(stream) for stream in streams] == ["200", "431", "200"]
        assert json.loads(client.body(streams[1]))["error"]["code"] == code
        assert not client.goaways


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["shutting_down"])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_new_requests_while_the_server_ends(protocol: str, path: str, code: str) -> None:
    async with hosted() as host, host.client(protocol) as client:
        assert (await client.get("/ready")).status_code == 200
        await host.service.fanout.drain(0)
        response = await client.post(path, json=BODIES[path])
        assert (response.status_code, error_of(response)["code"]) == (503, code)
        assert {name: response.headers.get(name) for name in RETRY} == {
            "retry-after": "1",
            "retry-after-ms": "1000",
            "x-should-retry": "true",
        }
        connection = response.headers.get("connection")
        assert connection == ("close" if protocol == "HTTP/1.1" else None)
        for probe, status in (("/live", 200), ("/ready", 503), ("/health", 503)):
            probed = await client.get(probe)
            assert probed.status_code == status
        assert probed.json() == {"status": "draining"}


@pytest.mark.wire("error:<code>")
@pytest.mark.parametrize("code", ["timeout"])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_takes_too_long(protocol: str, path: str, code: str) -> None:
    async with hosted(request_timeout=0.01) as host, host.client(protocol) as client:
        response = await client.post(path, json=BODIES[path])
        error = error_of(response)
        assert (response.status_code, error["type"], error["code"]) == (504, "server_error", code)
        assert not any(name in response.headers for name in RETRY)
        assert host.engine.aborted == [host.engine.requests[0].key]


async def test_only_generation_counts_for_the_rate_limit_and_each_key_has_its_own() -> None:
    now = 0.0
    keys = [{"authorization": f"Bearer {key}"} for key in ("a", "b")]
    server = hosted(clock=lambda: now, rate_limit=60, api_key=("a", "b"))

    async def status(key: int, path: str = CHAT) -> int:
        headers = {**JSON, **keys[key]}
        return (await client.post(path, content=b"{}", headers=headers)).status_code

    async with server as host, host.client() as client:
        assert [await status(0) for _ in range(61)] == [400] * 60 + [429]
        assert [await status(0, path) for path in (COMPLETIONS, RESPONSES)] == [429, 429]
        assert await status(0, "/tokenize") != 429
        assert (await client.get("/v1/models", headers=keys[0])).status_code == 200
        assert (await client.get(RESPONSES, headers=keys[0])).status_code == 405
        assert (await client.post(CHAT, content=b"{}")).status_code == 401
        assert await status(1) == 400
        now = 2.5
        assert [await status(0) for _ in range(3)] == [400, 400, 429]


def test_a_bucket_never_grants_more_than_its_rate() -> None:
    now = 0.0
    buckets = TokenBuckets(3, lambda: now)
    granted = 0
    for tick in range(601):
        now = tick / 10  # a minute, asked ten times a second
        granted += buckets.take("k") == 0
    assert granted == 3 + 3
    now += 3600
    assert [buckets.take("k") > 0 for _ in range(4)] == [False, False, False, True]
    wait_s = buckets.take("k")
    now += wait_s + 1e-9
    assert buckets.take("k") == 0
