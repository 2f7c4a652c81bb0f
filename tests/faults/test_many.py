"""Much at once and much in a row: streams, connections, requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from faults.conftest import Figure
from faults.readers import Crowd, Reading, all_begun, all_over, crowd, said
from faults.recordings import text, write_recordings
from faults.servers import Certificate, Server, antiphon, chat

CHAT = "/v1/chat/completions"
MANY = 512
STEP_MS = 80
TOKENS = 60
"""Of each of many streams: longer than it takes to begin them all."""
MIB = 1024 * 1024


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, certificate: Certificate
) -> Iterator[Server]:
    write_recordings(tmp_path, {"many": TOKENS})
    with antiphon(
        tmp_path, pace=f"{STEP_MS}ms", certificate=certificate if request.param else None
    ) as one:
        yield one
        assert one.logged() == []


async def on_one_connection(clients: Crowd) -> list[Reading]:
    client = await clients.h2()
    return [client.request(CHAT, chat("many")) for _ in range(MANY)]


async def on_h2_connections(clients: Crowd) -> list[Reading]:
    many = [await clients.h2() for _ in range(MANY)]
    return [client.request(CHAT, chat("many")) for client in many]


async def on_h1_connections(clients: Crowd) -> list[Reading]:
    many = [await clients.h1() for _ in range(MANY)]
    return [client.request(CHAT, chat("many")) for client in many]


@pytest.mark.parametrize("begin", [on_one_connection, on_h2_connections, on_h1_connections])
async def test_many_streams_at_once(
    server: Server, begin: Callable[[Crowd], Awaitable[list[Reading]]]
) -> None:
    async with crowd(server) as clients:
        readings = await begin(clients)
        await all_begun(readings)
        assert not any(reading.over.is_set() for reading in readings)
        await all_over(readings)
        assert {said(reading) for reading in readings} == {text(TOKENS)}
    server.becomes(lambda: server.metric("antiphon_requests_running"), 0.0)


async def test_ten_thousand_requests_on_one_connection(tmp_path: Path, figure: Figure) -> None:
    """Each a stream of its own. What is kept of ended ones has a limit that the first thousand do
    not reach; then memory stays as it is (2 MiB more after 20,000), and a leak is seen."""
    write_recordings(tmp_path, {"short": 5})
    with antiphon(tmp_path) as server:
        async with crowd(server) as clients:
            client = await clients.h2()
            early = 0
            for batch in range(200):
                readings = [client.request(CHAT, chat("short")) for _ in range(50)]
                await all_over(readings)
                assert {said(reading) for reading in readings} == {text(5)}
                client.readings.clear()
                if batch == 19:
                    early = server.rss()
            grown = server.rss() - early
            assert client.goaways == []
        assert server.logged() == []
    figure("MiB that the server has grown after the first thousand", grown / MIB)
    assert grown < 4 * MIB, f"{grown / MIB:.1f} MiB"
