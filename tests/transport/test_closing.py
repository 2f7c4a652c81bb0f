"""How connections close, over real sockets: in time, and without a word in the log."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
from quart import Quart

from antiphon.transport.ending import Ending
from antiphon.transport.unread import QUIET_S
from transport.hosting import GUARD_S, H1Client, H2Client, certificate, quart_app, serving


@pytest.fixture
def app() -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 401

    return app


async def ask(port: int, tls: ssl.SSLContext, request: bytes) -> bytes:
    """All that a client reads that leaves once it has heard of the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    with anyio.fail_after(GUARD_S):
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        await writer.wait_closed()
    return answer


async def test_nothing_is_logged_of_a_connection_that_ends_over_tls(
    app: Quart, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, tls = certificate(tmp_path)
    async with serving(app, cert) as listener:
        for _ in range(5):
            request = b"GET /hi HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            assert (await ask(listener.port, tls, request)).endswith(b"hi")
    assert not caplog.records


@pytest.mark.parametrize("headers", [["Content-Length: 1000"], ["Content-Length: 1000000000000"]])
async def test_an_answered_http1_request_without_its_body_holds_no_shutdown(
    app: Quart, headers: list[str]
) -> None:
    stop = Ending()
    async with serving(app, grace_s=GUARD_S, stop=stop) as listener, H1Client.open(listener) as it:
        await it.send("\r\n".join(["POST /early HTTP/1.1", "Host: x", *headers, "", ""]).encode())
        await it.until(b"no")
        began = asyncio.get_running_loop().time()
        stop.ask()
        assert await it.rest() == b""
    assert asyncio.get_running_loop().time() - began < QUIET_S / 2


async def test_an_answered_http2_request_without_its_body_holds_no_shutdown(app: Quart) -> None:
    stop = Ending()
    async with serving(app, grace_s=GUARD_S, stop=stop) as listener, H2Client.open(listener) as it:
        upload = await it.request("/early", "POST", end=False)
        await it.until_ended(upload)
        began = asyncio.get_running_loop().time()
        stop.ask()
        await it.read_to_end()
        assert it.goaways == [0]
    assert asyncio.get_running_loop().time() - began < QUIET_S / 2


@pytest.mark.parametrize("http2", [True, False])
async def test_a_body_that_still_comes_is_read_though_the_server_ends(
    app: Quart, http2: bool
) -> None:
    """A reset would take the answer from a client that reads only when it has sent all."""
    stop, size = Ending(), 3 * 2**20

    async def body() -> AsyncIterator[bytes]:
        for _ in range(size // 2**14):
            yield bytes(2**14)
            stop.ask()

    async with (
        serving(app, grace_s=GUARD_S, stop=stop) as listener,
        httpx.AsyncClient(http1=not http2, http2=http2, timeout=GUARD_S) as client,
    ):
        answer = await client.post(f"{listener.url}/early", content=body())
        assert (answer.status_code, answer.text) == (401, "no")


LAST = [
    pytest.param(b"no HTTP\r\n\r\n", b"400", id="no HTTP"),
    pytest.param(
        b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
        b"401",
        id="without its body",
    ),
]


@pytest.mark.parametrize(("request_", "status"), LAST)
async def test_over_tls_the_last_answer_is_soon_the_end(
    app: Quart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: bytes, status: bytes
) -> None:
    monkeypatch.setattr("antiphon.transport.connection.UNTOLD_S", 0.01)
    monkeypatch.setattr("antiphon.transport.connection.QUIET_S", 9 * GUARD_S)
    cert, tls = certificate(tmp_path)
    async with serving(app, cert) as listener:
        assert (await ask(listener.port, tls, request_)).startswith(b"HTTP/1.1 " + status)


async def test_over_tls_a_connection_that_stays_gives_a_body_its_time(
    app: Quart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.connection.UNTOLD_S", 0)
    cert, tls = certificate(tmp_path)
    async with serving(app, cert) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=tls)
        with anyio.fail_after(GUARD_S):
            for _ in range(3):
                writer.write(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n")
                assert b" 401 " in await reader.readuntil(b"\r\n\r\nno")
                for _ in range(50):
                    writer.write(b"x")
                    await asyncio.sleep(0)
            writer.close()
            await writer.wait_closed()
