"""Pages of other origins: who may read what, on every answer there is."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from antiphon.api.counters import Metrics
from antiphon.app import make_starting_app
from antiphon.config import Config
from antiphon.engines.port import Finish
from api.hosted import BODIES, CHAT, PROTOCOLS, RESPONSES, hosted

PAGE, OTHER = "https://page.example", "https://other.example:8443"
PREFLIGHT = {"access-control-request-method": "POST"}
SHARED = "access-control-"
OPENED = ("x-request-id", "retry-after", "antiphon-ignored-fields", "openai-processing-ms")


def said(response: Any) -> dict[str, str]:
    """The headers of CORS."""
    return {name: value for name, value in response.headers.items() if name.startswith(SHARED)}


def varies(response: Any) -> set[str]:
    return {name.strip().lower() for name in response.headers.get("vary", "").split(",")} - {""}


def assert_readable(response: Any, origin: str) -> None:
    assert said(response).keys() == {SHARED + "allow-origin", SHARED + "expose-headers"}
    assert response.headers[SHARED + "allow-origin"] == origin
    exposed = response.headers[SHARED + "expose-headers"].split(", ")
    assert set(OPENED) <= set(exposed)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "path", [CHAT, RESPONSES, "/v1/models/a/b", "/health", "/tokenize", "/v1/no/such", "/"]
)
async def test_a_preflight_needs_no_key_and_is_answered_everywhere(
    path: str, protocol: str
) -> None:
    server = hosted(cors_origin=(PAGE, OTHER), api_key=("key",))
    async with server as host, host.client(protocol) as client:
        asked = {"access-control-request-headers": "authorization,content-type,x-stainless-os"}
        for origin in (PAGE, OTHER):
            answer = await client.options(path, headers={"origin": origin, **PREFLIGHT, **asked})
            assert (answer.status_code, answer.content) == (204, b"")
            assert said(answer) == {
                SHARED + "allow-origin": origin,
                SHARED + "allow-methods": "DELETE, GET, HEAD, POST",
                SHARED + "allow-headers": asked["access-control-request-headers"],
                SHARED + "max-age": "600",
            }
            assert varies(answer) == {"origin", "access-control-request-headers"}
        stranger = await client.options(path, headers={"origin": "https://x.example", **PREFLIGHT})
        assert (stranger.status_code, said(stranger)) == (204, {})
        assert varies(stranger) == {"origin"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_every_answer_can_be_read_by_a_page_of_the_list_and_by_no_other(
    protocol: str,
) -> None:
    key = {"authorization": "Bearer key"}
    server = hosted(cors_origin=(PAGE,), api_key=("key",))
    async with server as host, host.client(protocol) as client:
        for headers, method, path, status in (
            (key, "GET", "/v1/models", 200),
            ({}, "GET", "/health", 200),
            ({}, "GET", "/v1/models", 401),
            (key, "GET", "/v1/nothing", 404),
            (key, "PATCH", CHAT, 405),
            (key, "POST", CHAT, 415),
        ):
            answer = await client.request(method, path, headers={**headers, "origin": PAGE})
            assert answer.status_code == status
            assert_readable(answer, PAGE)
            for other in ({"origin": OTHER}, {"origin": "null"}, {"origin": PAGE + "/"}, {}):
                answer = await client.request(method, path, headers={**headers, **other})
                assert (answer.status_code, said(answer)) == (status, {})
                assert varies(answer) == {"origin"}  # or a cache would give it to the page


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_can_be_read(protocol: str) -> None:
    async with hosted(cors_origin=(PAGE,)) as host, host.client(protocol) as client:
        body = {**BODIES[CHAT], "stream": True, "zork": 1}
        async with client.stream("POST", CHAT, json=body, headers={"origin": PAGE}) as response:
            assert_readable(response, PAGE)
            assert varies(response) == {"origin"}
            key = host.engine.requests[0].key
            host.engine.rows(lambda frame: frame.row(key, b"hi", finish=Finish.STOP))
            assert b"[DONE]" in await response.aread()


async def test_refusals_for_the_time_being_and_mistakes_can_be_read() -> None:
    origin = {"origin": PAGE}
    async with hosted(cors_origin=(PAGE,)) as host, host.client() as client:

        def fail(_: str) -> None:
            raise ZeroDivisionError

        host.service.catalogue.require = fail  # type: ignore[assignment,method-assign]  # a bug
        broken = await client.post(CHAT, json=BODIES[CHAT], headers=origin)
        assert broken.status_code == 500
        assert_readable(broken, PAGE)
        await host.service.fanout.drain(0)
        refused = await client.post(CHAT, json=BODIES[CHAT], headers=origin)
        assert refused.status_code == 503
        assert_readable(refused, PAGE)


async def test_any_origin() -> None:
    async with hosted(cors_origin=("*",)) as host, host.client() as client:
        for origin in (PAGE, "null"):
            assert_readable(await client.get("/v1/models", headers={"origin": origin}), "*")
        assert not said(await client.get("/v1/models"))


@pytest.mark.parametrize("path", [CHAT, "/v1/models", "/v1/nothing", "/health"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_without_origins_nothing_is_different(protocol: str, path: str) -> None:
    async with hosted() as host, host.client(protocol) as client:
        answer = await client.options(path, headers={"origin": PAGE, **PREFLIGHT})
        assert answer.status_code in {404, 405}
        assert not said(answer)
        assert not varies(answer)
        assert not said(await client.get("/health", headers={"origin": PAGE}))


async def test_options_that_ask_for_no_origin_are_what_they_were() -> None:
    async with hosted(cors_origin=("*",)) as host, host.client() as client:
        for headers in ({}, {"origin": PAGE}, PREFLIGHT):
            answer: httpx.Response = await client.options(CHAT, headers=headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_while_the_model_is_loaded() -> None:
    config = Config(cors_origin=(PAGE,), api_key=("key",))
    client = make_starting_app(config, Metrics()).test_client()
    preflight = await client.options(CHAT, headers={"origin": PAGE, **PREFLIGHT})
    assert (preflight.status_code, preflight.headers[SHARED + "allow-origin"]) == (204, PAGE)
    key = {"authorization": "Bearer key"}
    for headers, status in ((key, 503), ({}, 401)):
        answer = await client.post(CHAT, headers={"origin": PAGE, **headers})
        assert (answer.status_code, answer.headers[SHARED + "allow-origin"]) == (status, PAGE)
