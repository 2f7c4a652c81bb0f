"""Readers that stall: what they cost the server is bounded, and their neighbours do not notice."""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from faults.conftest import Figure, Serve
from faults.readers import Crowd, H1Reader, H2Readers, Reading, all_begun, all_over, crowd, said
from faults.recordings import text, write_recordings
from faults.servers import Server, antiphon, chat

KIB = 1024
CHAT = "/v1/chat/completions"
READERS = 128
THOUSAND = 1000
STEP_S = 0.04
WIDTHS = {"h2": 0, "h1": 3000}
"""Characters of a word of the stalled reader: more in a minute than its window holds, and more than
the kernel keeps for a socket that is not read."""
MINUTE_S = 60.0
COST = 4_000_000
"""Bytes that one stalled reader may cost."""
NOTICED = 2.0
"""Ratio of two gaps from which on a reader would notice. Both are of the same minute on the same
machine, and the gaps are those of the engine's steps, so that they are nearly the same."""


async def h2_readers(clients: Crowd, stalls: bool) -> tuple[list[Reading], Reading, H2Readers]:
    """128 streams of one connection."""
    client = await clients.h2()
    last = client.request(CHAT, chat("wide"), reads=not stalls)
    return [client.request(CHAT, chat("narrow")) for _ in range(READERS - 1)], last, client


async def h1_readers(clients: Crowd, stalls: bool) -> tuple[list[Reading], Reading, H1Reader]:
    """128 connections."""
    many = [await clients.h1() for _ in range(READERS - 1)]
    one = await clients.h1(receive_buffer=4096 if stalls else None)
    last = one.request(CHAT, chat("wide"), reads=not stalls)
    return [each.request(CHAT, chat("narrow")) for each in many], last, one


Begin = Callable[[Crowd, bool], Awaitable[tuple[list[Reading], Reading, H1Reader | H2Readers]]]


class Minute:
    """128 readers of a server of their own, one of whom may stall, and what they notice."""

    def __init__(self, begin: Begin, *, stalls: bool) -> None:
        self._begin = begin
        self._stalls = stalls

    async def run(self, folder: Path, whole: str) -> None:
        """``whole`` is what the reader gets that may stall."""
        with antiphon(folder, pace=f"{STEP_S * 1000:.0f}ms") as server:
            async with crowd(server) as clients:
                await self._warm_up(clients)
                before = server.rss()
                readings, last, client = await self._begin(clients, self._stalls)
                await all_over(readings)
                self.cost = server.rss() - before
                self.said = {said(reading) for reading in readings}
                self.gaps = sorted(gap for reading in readings for gap in reading.gaps)
                shown = await to_thread.run_sync(server.get, "/metrics")
                self.detached = b"antiphon_transport_detached_total 0.0" not in shown
                # It has missed nothing: all comes once it reads.
                assert last.ended != self._stalls
                client.open_windows()
                await all_over([last])
                assert said(last) == whole
            assert server.logged() == []

    async def _warm_up(self, clients: Crowd) -> None:
        client = await clients.h2()
        for _ in range(2):
            await all_over([client.request(CHAT, chat("warm")) for _ in range(READERS)])

    def gap(self, percent: int) -> float:
        """That percentile of the neighbours' gaps, in seconds."""
        return self.gaps[math.ceil(len(self.gaps) * percent / 100) - 1]


BEGIN: dict[str, Begin] = {"h2": h2_readers, "h1": h1_readers}


@pytest.mark.parametrize("protocol", BEGIN)
async def test_one_reader_stalls_for_a_minute(
    tmp_path: Path,
    protocol: str,
    request: pytest.FixtureRequest,
    figure: Figure,
) -> None:
    """Two servers have the same 128 streams at the same time; of one of them one reader stalls."""
    minute_s = min(MINUTE_S, request.config.getoption("--minutes") * 60)
    steps = round(minute_s / STEP_S)
    write_recordings(tmp_path, {"narrow": steps, "warm": 25})
    write_recordings(tmp_path, {"wide": steps}, width=WIDTHS[protocol])
    begin = BEGIN[protocol]
    with_it, without = Minute(begin, stalls=True), Minute(begin, stalls=False)
    async with anyio.create_task_group() as tasks:
        for one in (with_it, without):
            tasks.start_soon(one.run, tmp_path, text(steps, WIDTHS[protocol]))
    assert with_it.said == without.said == {text(steps)}
    assert not without.detached
    if minute_s == MINUTE_S:
        assert with_it.detached, "it has not stalled at all"
    figure("MB that the server has grown, with and without", with_it.cost / 1e6, without.cost / 1e6)
    assert with_it.cost - without.cost < COST
    for percent in (50, 99):
        gaps = with_it.gap(percent), without.gap(percent)
        figure(
            f"ms between events of the others at {percent} %, with and without",
            *(gap * 1000 for gap in gaps),
        )
        assert gaps[0] < NOTICED * gaps[1], f"{percent} %: {gaps}"
    assert statistics.median(with_it.gaps) < NOTICED * STEP_S


async def memory_of_a_thousand(server: Server, protocol: str, path: str) -> int:
    """Bytes by which the server has grown with so many readers that do not read."""
    async with crowd(server) as clients:
        warm = await clients.h2()
        await all_over([warm.request(f"{path[: path.rindex('/')]}/paced?n=3") for _ in range(50)])
        before = server.rss()
        if protocol == "h2":
            connections = [await clients.h2() for _ in range(8)]
            readings = [
                each.request(path, reads=False)
                for each in connections
                for _ in range(THOUSAND // 8)
            ]
            await all_begun(readings)
        else:
            for _ in range(THOUSAND):
                one = await clients.h1(receive_buffer=4096)
                one.request(path, reads=False)
        await until_nothing_more_is_made(server)
        assert server.live() == THOUSAND
        return server.rss() - before


@pytest.mark.parametrize("way", ["s", "sink"])
@pytest.mark.parametrize("protocol", ["h2", "h1"])
async def test_a_thousand_stalled_readers(
    serve_ours: Serve,
    protocol: str,
    way: str,
    figure: Figure,
) -> None:
    """Of a flood: beside what a stream costs that has nothing to say, each has less than 80 KiB."""
    silent = await memory_of_a_thousand(serve_ours(), protocol, f"/{way}/silent")
    flooded = await memory_of_a_thousand(serve_ours(), protocol, f"/{way}/flood")
    each = silent / THOUSAND / KIB, flooded / THOUSAND / KIB
    figure("KiB of each reader, of silence and of a flood", *each)
    assert (flooded - silent) / THOUSAND < 80 * KIB
    if (protocol, way) == ("h2", "sink"):
        # The streams of a connection share its limit.
        assert flooded / THOUSAND < 80 * KIB


async def until_nothing_more_is_made(server: Server) -> None:
    """All of the readers are held."""
    made, same = -1, 0
    with anyio.fail_after(120):
        while same < 3:
            await anyio.sleep(0.3)
            now = (await to_thread.run_sync(server.tally))["produced"]
            same = same + 1 if now == made else 0
            made = now
