"""How connections close, over real sockets: in time, and without a word in the log."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import anyio
import pytest
from quart import Quart

from transport.hosting import GUARD_S, certificate, quart_app, serving


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
