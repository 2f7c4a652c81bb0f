"""One version of HTTP alone: what it is spoken over, and what clients of the other one hear."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from h2.errors import ErrorCodes
from quart import Quart, request

from antiphon.transport.addresses import TcpAddress
from antiphon.transport.listener import Listener, bind, listen
from antiphon.transport.settings import HostConfig, HttpVersions
from antiphon.transport.tls import Certificate
from antiphon.transport.versions import Http2Only
from transport.hosting import (
    OWN_ID,
    H1Client,
    H2Client,
    certificate,
    new_request_id,
    quart_app,
    serving_on,
)

UPGRADE = (
    b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n"
)
HANDSHAKE = (
    b"GET /version HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
def app() -> Quart:
    app = quart_app()

    @app.route("/version", methods=["GET", "POST"])
    async def version() -> str:
        await request.get_data()
        return str(request.http_version)

    return app


@pytest.fixture
def listener() -> Listener:
    return bind("127.0.0.1", 0)


def only(http: HttpVersions) -> HostConfig:
    return HostConfig(new_request_id, http=http)


async def test_without_http2_its_clients_are_told_to_use_the_other(
    app: Quart, listener: Listener
) -> None:
    async with serving_on(app, [listener], only("1.1")):
        async with H2Client.open(listener) as client:
            await client.read_to_end()
            assert client.goaways == [ErrorCodes.HTTP_1_1_REQUIRED]
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{listener.url}/version")).text == "1.1"


async def test_without_http2_an_upgrade_is_passed_over(app: Quart, listener: Listener) -> None:
    async with serving_on(app, [listener], only("1.1")), H1Client.open(listener) as client:
        await client.send(UPGRADE)
        answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"1.1")


async def test_without_http1_its_clients_get_an_error_object(
    app: Quart, listener: Listener
) -> None:
    config = only("2")
    async with serving_on(Http2Only(app, config), [listener], config):
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{listener.url}/version", content=b"x" * 100_000)
            assert answer.status_code == 505
            assert answer.json()["error"]["code"] == "http_version_not_supported"
            assert answer.headers["x-request-id"] == OWN_ID
            assert answer.headers["connection"] == "close"
        async with httpx.AsyncClient(http1=False, http2=True) as prior:
            assert (await prior.get(f"{listener.url}/version")).text == "2"
        async with H1Client.open(listener) as plain:
            await plain.send(HANDSHAKE)
            assert (await plain.rest()).startswith(b"HTTP/1.1 505 ")


async def test_without_http1_an_upgrade_is_followed(app: Quart, listener: Listener) -> None:
    config = only("2")
    async with (
        serving_on(Http2Only(app, config), [listener], config),
        H1Client.open(listener) as client,
    ):
        await client.send(UPGRADE)
        assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    ("http", "agreed"),
    [("auto", "HTTP/2"), ("1.1", "HTTP/1.1"), ("2", "HTTP/2")],
)
async def test_over_tls_only_that_can_be_agreed_on(
    app: Quart, tmp_path: Path, http: HttpVersions, agreed: str
) -> None:
    pair, trust = certificate(tmp_path)
    listener = listen(TcpAddress("127.0.0.1", 0), Certificate(*pair, http=http))
    safe = httpx.AsyncClient(verify=trust, http2=True)
    async with serving_on(app, [listener], only(http)), safe as client:
        assert (await client.get(f"{listener.url}/version")).http_version == agreed
