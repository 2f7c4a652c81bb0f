"""SIGTERM: open streams come to a proper end, new work is refused, the exit status is 0."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import anyio
import httpx
import pytest

from conformance.conftest import FIXTURES, Server, serving

BODY = {"model": "plain/hold", "stream": True, "input": "hi"}


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with serving(
        "--engine",
        "replay",
        "--fixtures",
        str(FIXTURES),
        "--pace",
        "full",
        "--drain-timeout",
        request.param,
    ) as made:
        yield made


@pytest.mark.parametrize("server", ["0.5"], indirect=True)
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_a_stream_that_does_not_end_is_failed_at_the_deadline(
    server: Server, protocol: str
) -> None:
    http2 = protocol == "HTTP/2"
    with (
        httpx.Client(base_url=server.url, http1=not http2, http2=http2, timeout=20) as client,
        client.stream("POST", "/v1/responses", json=BODY) as response,
    ):
        lines = response.iter_lines()
        next(lines)
        server.process.send_signal(signal.SIGTERM)
        text = "\n".join(lines)
    assert "event: error" in text
    assert '"status":"failed"' in text
    assert "shutting down" in text
    assert text.rstrip().endswith("data: [DONE]")
    assert server.process.wait(timeout=20) == 0


@pytest.mark.parametrize("server", ["600"], indirect=True)
def test_while_draining_new_work_is_refused_and_a_second_signal_ends_at_once(
    server: Server,
) -> None:
    async def talk() -> None:
        async with (
            httpx.AsyncClient(base_url=server.url, http1=False, http2=True, timeout=20) as client,
            client.stream("POST", "/v1/responses", json=BODY) as response,
        ):
            await anext(response.aiter_bytes())
            server.process.send_signal(signal.SIGTERM)
            while (health := await client.get("/health")).status_code == 200:
                pass
            assert health.json() == {"status": "draining"}
            refused = await client.post("/v1/responses", json=BODY)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "shutting_down"
            assert refused.headers["retry-after"] == "1"
            server.process.send_signal(signal.SIGTERM)

    anyio.run(talk)
    assert server.process.wait(timeout=20) == 0
